"""Each equation against a value worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.errors import MethodError
from soda_tta.objectives.equations import (
    LOG_EPSILON,
    PseudoLabels,
    Soda,
    cross_entropy,
    entropy,
    information_of_each,
    mutual_information,
)
from soda_tta.settings import meanings_of

EVEN = np.array([[0.5, 0.5], [0.5, 0.5]])
CONFIDENT = np.array([[1.0, 0.0], [0.0, 1.0]])


def h(*probabilities: float) -> float:
    return -sum(p * math.log(p + LOG_EPSILON) for p in probabilities)


def test_entropy_by_hand() -> None:
    np.testing.assert_allclose(
        entropy(np.array([[0.25, 0.75], [1.0, 0.0]])), [h(0.25, 0.75), h(1.0, 0.0)]
    )
    assert entropy(EVEN)[0] == pytest.approx(math.log(2), abs=1e-4)


@pytest.mark.parametrize(
    ("probabilities", "by_hand"),
    [
        (EVEN, 0.0),  # not confident about any image
        (CONFIDENT, math.log(2)),  # confident about each, balanced over all
        (np.array([[1.0, 0.0], [1.0, 0.0]]), 0.0),  # confident, but always the same class
        (np.array([[0.9, 0.1], [0.3, 0.7]]), h(0.6, 0.4) - (h(0.9, 0.1) + h(0.3, 0.7)) / 2),
    ],
)
def test_equation_8_mutual_information_by_hand(probabilities, by_hand) -> None:
    assert mutual_information(probabilities) == pytest.approx(by_hand, abs=1e-4)


def test_cross_entropy_by_hand() -> None:
    value = cross_entropy(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0]))
    assert value == pytest.approx(-(math.log(0.8 + LOG_EPSILON) + math.log(0.5 + LOG_EPSILON)) / 2)


def test_equation_13_separates_reliable_from_unreliable_images() -> None:
    rows = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    loss = Soda(alpha=0.5)(
        rows, labels=np.array([0, 0, 1]), reliable=np.array([False, False, True])
    )
    information = h(0.6, 0.4) - (h(0.9, 0.1) + h(0.3, 0.7)) / 2
    assert loss.mutual_information == pytest.approx(information)
    assert loss.cross_entropy == pytest.approx(-math.log(0.8 + LOG_EPSILON))
    assert loss.value == pytest.approx(-information + 0.5 * loss.cross_entropy)


def test_an_empty_part_of_equation_13_counts_nothing() -> None:
    labels = np.array([0, 1])
    none_reliable = Soda(alpha=9.0)(CONFIDENT, labels, np.array([False, False]))
    assert none_reliable.value == pytest.approx(-mutual_information(CONFIDENT))
    all_reliable = Soda(alpha=9.0)(CONFIDENT, labels, np.array([True, True]))
    assert all_reliable.value == pytest.approx(9 * cross_entropy(CONFIDENT, labels))


@given(st.integers(1, 20), st.integers(2, 10), st.integers(0, 1000))
def test_mutual_information_lies_between_zero_and_the_logarithm_of_the_classes(
    rows: int, classes: int, seed: int
) -> None:
    probabilities = np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), rows)
    assert -1e-4 <= mutual_information(probabilities) <= math.log(classes) + 1e-4


@given(st.integers(1, 40), st.integers(2, 10), st.integers(0, 1000))
def test_the_mean_of_information_of_each_is_the_mutual_information(
    rows: int, classes: int, seed: int
) -> None:
    probabilities = np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), rows)
    assert information_of_each(probabilities).mean() == pytest.approx(
        mutual_information(probabilities), abs=1e-12
    )


def test_information_of_each_by_hand() -> None:
    rows = np.array([[0.9, 0.1], [0.3, 0.7]])  # their mean is (0.6, 0.4)
    first = -0.9 * math.log(0.6 + LOG_EPSILON) - 0.1 * math.log(0.4 + LOG_EPSILON) - h(0.9, 0.1)
    second = -0.3 * math.log(0.6 + LOG_EPSILON) - 0.7 * math.log(0.4 + LOG_EPSILON) - h(0.3, 0.7)
    np.testing.assert_allclose(information_of_each(rows), [first, second])


@pytest.mark.parametrize(
    ("objective", "wrong"),
    [(Soda, {"alpha": -1.0}), (Soda, {"beta": -1.0}), (PseudoLabels, {"beta": -1.0})],
)
def test_negative_weights_are_refused(objective, wrong) -> None:
    with pytest.raises(MethodError, match="0 or more"):
        objective(**wrong)


@pytest.mark.parametrize("objective", [Soda(), PseudoLabels()])
def test_every_setting_has_a_help_text(objective) -> None:
    assert all(meanings_of(objective).values())

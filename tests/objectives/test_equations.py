"""Each equation against a value worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.objectives.equations import (
    LOG_EPSILON,
    Soda,
    cross_entropy,
    entropy,
    information_of_each,
    mutual_information,
    pairs_of_different,
    shared_information_of_each,
)

HALF = np.array([[0.5, 0.5], [0.5, 0.5]])
SURE = np.array([[1.0, 0.0], [0.0, 1.0]])


def h(*probabilities: float) -> float:
    return -sum(p * math.log(p + LOG_EPSILON) for p in probabilities)


def test_entropy_by_hand() -> None:
    np.testing.assert_allclose(
        entropy(np.array([[0.25, 0.75], [1.0, 0.0]])), [h(0.25, 0.75), h(1.0, 0.0)]
    )
    assert entropy(HALF)[0] == pytest.approx(math.log(2), abs=1e-4)


@pytest.mark.parametrize(
    ("probabilities", "by_hand"),
    [
        (HALF, 0.0),  # unsure of each, nothing learned
        (SURE, math.log(2)),  # sure of each, balanced in all
        (np.array([[1.0, 0.0], [1.0, 0.0]]), 0.0),  # sure, but always the same
        (np.array([[0.9, 0.1], [0.3, 0.7]]), h(0.6, 0.4) - (h(0.9, 0.1) + h(0.3, 0.7)) / 2),
    ],
)
def test_equation_8_mutual_information_by_hand(probabilities, by_hand) -> None:
    assert mutual_information(probabilities) == pytest.approx(by_hand, abs=1e-4)


def test_cross_entropy_by_hand() -> None:
    value = cross_entropy(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0]))
    assert value == pytest.approx(-(math.log(0.8 + LOG_EPSILON) + math.log(0.5 + LOG_EPSILON)) / 2)


def test_equation_13_splits_reliable_from_unreliable() -> None:
    rows = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    loss = Soda(alpha=0.5)(
        rows, labels=np.array([0, 0, 1]), reliable=np.array([False, False, True])
    )
    information = h(0.6, 0.4) - (h(0.9, 0.1) + h(0.3, 0.7)) / 2
    assert loss.mutual_information == pytest.approx(information)
    assert loss.cross_entropy == pytest.approx(-math.log(0.8 + LOG_EPSILON))
    assert loss.value == pytest.approx(-information + 0.5 * loss.cross_entropy)


def test_an_empty_reliable_set_means_mutual_information_only_and_the_reverse() -> None:
    labels = np.array([0, 1])
    assert Soda(alpha=9.0)(SURE, labels, np.array([False, False])).value == pytest.approx(
        -mutual_information(SURE)
    )
    assert Soda(alpha=9.0)(SURE, labels, np.array([True, True])).value == pytest.approx(
        9 * cross_entropy(SURE, labels)
    )


@given(st.integers(1, 20), st.integers(2, 10), st.integers(0, 1000))
def test_mutual_information_lies_between_nothing_and_log_of_the_classes(
    rows: int, classes: int, seed: int
) -> None:
    probabilities = np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), rows)
    assert -1e-4 <= mutual_information(probabilities) <= math.log(classes) + 1e-4


@given(st.integers(1, 40), st.integers(2, 10), st.integers(0, 1000))
def test_what_each_answer_adds_sums_up_to_the_mutual_information(
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


@given(st.integers(40, 90), st.integers(2, 8), st.integers(0, 1000))
def test_what_is_shared_is_never_more_than_a_look_holds(rows: int, classes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    first, second = (generator.dirichlet(np.full(classes, 0.3), rows) for _ in range(2))
    assert (
        abs(shared_information_of_each(first, second).mean()) < 0.5
    )  # independent looks: nothing but chance
    assert shared_information_of_each(first, first).mean() <= h(*first.mean(axis=0)) + 1e-3


@pytest.mark.parametrize("count", [2, 3, 60])
def test_no_image_is_paired_with_itself_where_different_ones_are_meant(count: int) -> None:
    for others in pairs_of_different(count):
        assert sorted(others) == list(range(count))
        assert count < 10 or not (others == np.arange(count)).any()


def test_information_shared_by_two_looks_does_not_depend_on_the_order_of_the_images() -> None:
    """Folders lie class by class: pairs of neighbours would then be of one class, and share what a class shares."""
    generator = np.random.default_rng(0)
    classes = np.sort(generator.integers(0, 10, 120))
    first, second = (
        0.5 * np.eye(10)[classes] + 0.5 * generator.dirichlet(np.ones(10), 120) for _ in range(2)
    )
    mixed = generator.permutation(120)
    by_class = shared_information_of_each(first, second).mean()
    assert by_class == pytest.approx(
        shared_information_of_each(first[mixed], second[mixed]).mean(), rel=0.05
    )
    assert by_class > 0.1

"""What two views of an image share, against values worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.objectives.agreement import (
    MATCH_EPSILON,
    PAIR_SHIFTS,
    agreement_of_each,
    matching_information_of_each,
    pairs_of_different,
    shared_information_of_each,
)
from soda_tta.objectives.equations import entropy


@given(st.integers(40, 90), st.integers(2, 8), st.integers(0, 1000))
def test_shared_information_never_exceeds_the_information_of_one_view(
    rows: int, classes: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    first, second = (generator.dirichlet(np.full(classes, 0.3), rows) for _ in range(2))
    # independent views share nothing except by chance
    assert abs(shared_information_of_each(first, second).mean()) < 0.5
    assert shared_information_of_each(first, first).mean() <= entropy(first.mean(axis=0)) + 1e-3


@pytest.mark.parametrize("count", [2, 3, 60])
def test_pairs_of_different_never_pair_an_image_with_itself(count: int) -> None:
    for others in pairs_of_different(count):
        assert sorted(others) == list(range(count))
        assert count < 10 or not (others == np.arange(count)).any()


def test_shared_information_does_not_depend_on_the_order_of_the_images() -> None:
    """Folders are sorted by class; neighbouring images would share their class."""
    generator = np.random.default_rng(0)
    classes = np.sort(generator.integers(0, 10, 120))
    first, second = (
        0.5 * np.eye(10)[classes] + 0.5 * generator.dirichlet(np.ones(10), 120) for _ in range(2)
    )
    shuffled = generator.permutation(120)
    by_class = shared_information_of_each(first, second).mean()
    in_random_order = shared_information_of_each(first[shuffled], second[shuffled]).mean()
    assert by_class == pytest.approx(in_random_order, rel=0.05)
    assert by_class > 0.1


def test_shared_information_by_hand(monkeypatch) -> None:
    """Eight images of two kinds in turn: every other image is of the same kind."""
    pairs = [np.roll(np.arange(8), shift) for shift in PAIR_SHIFTS]
    monkeypatch.setattr("soda_tta.objectives.agreement.pairs_of_different", lambda count: pairs)
    first = np.tile([[1.0, 0.0], [0.0, 1.0]], (4, 1))
    second = np.tile([[0.5, 0.5], [0.0, 1.0]], (4, 1))
    # together (0, 0) 1/4, (0, 1) 1/4, (1, 1) 1/2; by chance (., 0) 1/8, (., 1) 3/8
    together = np.tile([(math.log(2) + math.log(2 / 3)) / 2, math.log(4 / 3)], 4)
    # an odd number of places on, kind 0 meets kind 1's response: (0, 1) 1/2, (1, 0) 1/4, (1, 1) 1/4
    apart = np.tile([math.log(4 / 3), (math.log(2) + math.log(2 / 3)) / 2], 4)
    odd = sum(shift % 2 for shift in PAIR_SHIFTS) / len(PAIR_SHIFTS)
    by_hand = together - odd * apart - (1 - odd) * together
    np.testing.assert_allclose(shared_information_of_each(first, second), by_hand, atol=1e-4)


def test_guesses_that_do_not_depend_on_the_image_share_nothing() -> None:
    generator = np.random.default_rng(0)
    confident = [np.eye(4)[generator.integers(0, 4, 5000)] for _ in range(2)]
    assert abs(shared_information_of_each(*confident).mean()) < 0.01
    always = np.eye(4)[np.zeros(5000, int)]
    assert abs(shared_information_of_each(always, always).mean()) < 1e-3
    even = np.full((5000, 4), 0.25)
    assert abs(shared_information_of_each(even, even).mean()) < 1e-6


def test_matching_information_by_hand() -> None:
    """Two images: the views of the first match; the second view of the other fits either."""
    first = np.array([[1.0, 0.0], [0.0, 1.0]])
    second = np.array([[1.0, 0.0], [0.5, 0.5]])
    likeness = np.array([[1.0, 0.5], [0.0, 0.5]]) + MATCH_EPSILON
    rows = np.log(likeness.mean(axis=1))
    columns = np.log(likeness.mean(axis=0))
    expected = [
        math.log(1.01) - (rows[0] + columns[0]) / 2,
        math.log(0.51) - (rows[1] + columns[1]) / 2,
    ]
    np.testing.assert_allclose(matching_information_of_each(first, second), expected)
    np.testing.assert_allclose(agreement_of_each(first, second), [1.0, 0.5])

"""Balanced assignments: the parts of the estimate, against cases made by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.judging.balanced import (
    agreement_score,
    balanced_classes,
    favourable_shares,
    largest_accuracy,
)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 99))
def test_no_class_is_assigned_more_than_its_share(classes: int, each: int, seed: int) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, 0.2), classes * each)
    assert (np.bincount(balanced_classes(rows), minlength=classes) == each).all()


def test_the_score_by_hand() -> None:
    assert agreement_score(np.tile(np.eye(4), (25, 1))) == pytest.approx(1)
    assert agreement_score(np.eye(4)[np.zeros(100, int)]) == pytest.approx(0.25)
    one_of_two = np.array([[0.9, 0.1], [0.6, 0.4]])  # the second is assigned the other class
    assert agreement_score(one_of_two) == pytest.approx(0.9**0.8 / (0.9**0.8 + 0.1**0.8) / 2)


def test_the_score_takes_specified_shares_and_very_many_rows() -> None:
    only_two = np.eye(4)[np.repeat([0, 1], [75, 25])]
    assert agreement_score(only_two, np.array([0.75, 0.25, 0, 0])) == pytest.approx(1)
    many = np.tile(np.eye(4), (50_000, 1))
    assert agreement_score(many[np.random.default_rng(0).permutation(len(many))]) > 0.9


def test_the_bound_covers_random_samples_of_a_perfect_model() -> None:
    shares = np.full(10, 0.1)
    generator = np.random.default_rng(0)
    held = [largest_accuracy(generator.integers(0, 10, 200), shares) >= 1 for _ in range(40)]
    assert np.mean(held) >= 0.9


def test_favourable_shares_stay_within_a_factor_of_two() -> None:
    shares = favourable_shares(np.array([0] * 50 + [1] * 30 + [2] * 20), 10)
    assert shares.sum() == pytest.approx(1) and shares.max() / shares.min() == pytest.approx(2)
    assert shares[0] == shares.max() and shares[9] == shares.min()

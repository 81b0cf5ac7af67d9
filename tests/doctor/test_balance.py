"""Uneven predictions: from uneven images, or from a model that prefers a few classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.doctor.balance import check_balance, evenness


def probabilities(shares, count: int = 300, seed: int = 0) -> np.ndarray:
    classes = np.random.default_rng(seed).choice(len(shares), count, p=shares)
    return 0.8 * np.eye(len(shares))[classes] + 0.2 / len(shares)


EVEN = np.full(10, 0.1)
UNEVEN = np.array([0.9, *[0.1 / 9] * 9])


def test_even_predictions_are_good() -> None:
    assert check_balance(probabilities(EVEN)).state == "good"


def test_uneven_predictions_are_a_caution_that_suggests_clean_images() -> None:
    finding = check_balance(probabilities(UNEVEN))
    assert finding.state == "caution" and "clean=" in finding.remedy
    assert finding.measurements["largest_class"] == 0
    assert finding.measurements["largest_share"] == pytest.approx(0.9, abs=0.05)


def test_clean_images_distinguish_a_shift_from_unbalanced_classes() -> None:
    uneven = probabilities(UNEVEN)
    assert check_balance(uneven, clean=probabilities(EVEN, seed=1)).state == "good"
    assert check_balance(uneven, clean=probabilities(UNEVEN, seed=1)).state == "bad"


@given(st.integers(2, 200), st.integers(100, 400), st.integers(0, 99))
def test_balanced_labels_are_even_for_any_number_of_classes(
    classes: int, count: int, seed: int
) -> None:
    labels = np.random.default_rng(seed).integers(0, classes, count)
    assert 0.85 < evenness(labels, classes) < 1.15


def test_more_classes_than_images_do_not_count_as_imbalance() -> None:
    labels = np.random.default_rng(0).integers(0, 1000, 100)
    assert check_balance(np.eye(1000)[labels]).state == "good"

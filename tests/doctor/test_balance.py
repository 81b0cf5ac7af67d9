"""Uneven answers: of uneven images, or of a model that a shift makes prefer a few classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.doctor.balance import balance, evenness


def answers(shares, count: int = 300, seed: int = 0) -> np.ndarray:
    classes = np.random.default_rng(seed).choice(len(shares), count, p=shares)
    return 0.8 * np.eye(len(shares))[classes] + 0.2 / len(shares)


EVEN, ODD = np.full(10, 0.1), np.array([0.9, *[0.1 / 9] * 9])


def test_even_answers_are_good() -> None:
    assert balance(answers(EVEN)).state == "good"


def test_uneven_answers_alone_are_a_caution_that_asks_for_clean_images() -> None:
    found = balance(answers(ODD))
    assert found.state == "caution" and "--clean" in found.remedy
    assert found.numbers["largest_class"] == 0 and found.numbers["largest_share"] == pytest.approx(
        0.9, abs=0.05
    )


def test_clean_images_tell_a_shift_from_unbalanced_classes() -> None:
    assert balance(answers(ODD), clean=answers(EVEN, seed=1)).state == "good"
    assert balance(answers(ODD), clean=answers(ODD, seed=1)).state == "bad"


@given(st.integers(2, 200), st.integers(100, 400), st.integers(0, 99))
def test_balanced_labels_are_even_however_few_they_are(classes: int, count: int, seed: int) -> None:
    labels = np.random.default_rng(seed).integers(0, classes, count)
    assert 0.85 < evenness(labels, classes) < 1.15


def test_more_classes_than_images_is_no_sign_of_imbalance() -> None:
    labels = np.random.default_rng(0).integers(0, 1000, 100)
    assert balance(np.eye(1000)[labels]).state == "good"

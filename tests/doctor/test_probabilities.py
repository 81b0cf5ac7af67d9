"""Each trait of the answers, shown by rows that are built to have it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.doctor.probabilities import (
    completeness,
    digits,
    repeatability,
    saturation,
    steps_in_one,
    sums,
)


def rows(count: int = 200, classes: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), count).astype(np.float32)


def only_best(answers: np.ndarray, kept: int, fill: bool) -> np.ndarray:
    threshold = -np.sort(-answers, axis=1)[:, kept - 1 : kept]
    cut = np.where(answers >= threshold, answers, 0)
    if not fill:
        return cut / cut.sum(axis=1, keepdims=True)
    rest = (1 - cut.sum(axis=1, keepdims=True)) / (answers.shape[1] - kept)
    return np.where(cut > 0, cut, np.minimum(rest, cut.max(axis=1, keepdims=True))).astype(
        np.float32
    )


def test_plain_softmax_rows_are_good_in_every_respect() -> None:
    for look in (sums, digits, completeness, saturation):
        assert look(rows()).state == "good", look(rows()).sentence


def test_rows_that_miss_one_are_told() -> None:
    found = sums(np.round(rows(), 3))
    assert found.state == "caution" and found.numbers["largest_deviation"] > 1e-4


@pytest.mark.parametrize(
    ("decimals", "state", "says"),
    [
        (1, "bad", "1 digit:"),
        (2, "caution", "2 digits"),
        (3, "caution", "3 digits"),
        (4, "caution", "4 digits"),
    ],
)
def test_rounding_is_told_by_its_digits(decimals: int, state: str, says: str) -> None:
    found = digits(np.round(rows(), decimals).astype(np.float32))
    assert (found.state, found.numbers["steps"]) == (state, 10**decimals) and says in found.sentence


@given(st.sampled_from([10, 100, 255, 256, 1000, 10_000]), st.integers(0, 1000))
def test_every_grid_is_found_and_never_a_coarser_one(steps: int, seed: int) -> None:
    exact = rows(100, seed=seed)
    found = steps_in_one((np.rint(exact * steps) / steps).astype(np.float32))
    assert found == steps
    assert steps_in_one(exact) is None


def test_answers_next_to_zero_and_one_are_not_taken_for_rounded() -> None:
    sure = np.full((50, 8), 1e-9, np.float32)
    sure[np.arange(50), np.arange(50) % 8] = 1
    assert digits(sure).state == "good"


def test_half_precision_is_recognised() -> None:
    found = digits(rows().astype(np.float16).astype(np.float32))
    assert found.state == "good" and found.numbers["half"]


@pytest.mark.parametrize("fill", [False, True])
def test_a_service_that_keeps_the_best_classes_is_found_out(fill: bool) -> None:
    found = completeness(only_best(rows(), 3, fill))
    assert found.state == "caution" and found.numbers["kept"] == 3


def test_one_class_alone_is_a_caution_with_or_without_its_confidence() -> None:
    answers = rows()
    classes = np.eye(8, dtype=np.float32)[answers.argmax(axis=1)]
    for found in (completeness(classes), completeness(only_best(answers, 1, fill=True))):
        assert found.state == "caution" and "soda-e" in found.remedy
    assert digits(classes).sentence.startswith("Answers are classes")


def test_two_classes_are_never_called_incomplete() -> None:
    assert completeness(rows(classes=2)).state == "good"


def test_rounding_alone_is_not_taken_for_missing_classes() -> None:
    assert completeness(np.round(rows(), 2)).state == "good"


def test_a_model_without_an_opinion_is_bad() -> None:
    assert completeness(np.full((50, 4), 0.25, np.float32)).state == "bad"


def test_saturation_by_how_many_answers_are_exactly_one() -> None:
    answers = rows(100)
    sure = np.eye(8, dtype=np.float32)[answers.argmax(axis=1)]
    states = [
        saturation(np.concatenate([sure[:count], answers[count:]])).state for count in (10, 50, 95)
    ]
    assert states == ["good", "caution", "caution"]


def test_the_same_answer_again_is_good() -> None:
    assert repeatability(rows(), rows() + 1e-7, None).state == "good"


def test_randomness_and_company_are_told_apart() -> None:
    first, again, other = rows(seed=0), rows(seed=1), rows(seed=2)
    company, random = repeatability(first, again, again), repeatability(first, again, other)
    assert company.state == random.state == "bad"
    assert company.numbers["company"] and "evaluation mode" in company.remedy
    assert not random.numbers["company"] and "dropout" in random.remedy
    slight = repeatability(first, first + np.float32(1e-4), first)
    assert slight.state == "caution" and slight.numbers["answers_changed"] == 0

"""Every check of the probabilities, on rows made for it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.box.probabilities import check_probabilities
from soda_tta.doctor.probabilities import (
    check_completeness,
    check_digits,
    check_repeatability,
    check_saturation,
    check_sums,
    steps_per_unit,
)


def rows(count: int = 200, classes: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), count).astype(np.float32)


def only_best(probabilities: np.ndarray, kept: int, fill: bool) -> np.ndarray:
    """Only the best classes; the others get zero, or equal parts of what is left."""
    threshold = -np.sort(-probabilities, axis=1)[:, kept - 1 : kept]
    cut = np.where(probabilities >= threshold, probabilities, 0)
    if not fill:
        return cut / cut.sum(axis=1, keepdims=True)
    rest = (1 - cut.sum(axis=1, keepdims=True)) / (probabilities.shape[1] - kept)
    filled = np.where(cut > 0, cut, np.minimum(rest, cut.max(axis=1, keepdims=True)))
    return filled.astype(np.float32)


def test_softmax_rows_pass_every_check() -> None:
    for check in (check_sums, check_digits, check_completeness, check_saturation):
        assert check(rows()).state == "good", check(rows()).sentence


def test_rows_that_do_not_sum_to_one_are_reported() -> None:
    finding = check_sums(np.round(rows(), 3))
    assert finding.state == "caution" and finding.measurements["largest_deviation"] > 1e-4


@pytest.mark.parametrize(
    ("decimals", "state", "precision"),
    [
        (1, "bad", "1 digit:"),
        (2, "caution", "2 digits"),
        (3, "caution", "3 digits"),
        (4, "caution", "4 digits"),
    ],
)
def test_rounding_is_reported_with_its_digits(decimals: int, state: str, precision: str) -> None:
    finding = check_digits(np.round(rows(), decimals).astype(np.float32))
    assert finding.state == state and finding.measurements["steps"] == 10**decimals
    assert precision in finding.sentence


@given(st.sampled_from([10, 100, 255, 256, 1000, 10_000]), st.integers(0, 1000))
def test_every_grid_is_found_and_never_a_coarser_one(steps: int, seed: int) -> None:
    exact = rows(100, seed=seed)
    assert steps_per_unit((np.rint(exact * steps) / steps).astype(np.float32)) == steps
    assert steps_per_unit(exact) is None


def test_values_next_to_zero_and_one_do_not_count_as_rounded() -> None:
    confident = np.full((50, 8), 1e-9, np.float32)
    confident[np.arange(50), np.arange(50) % 8] = 1
    assert check_digits(confident).state == "good"


def test_half_precision_is_recognised() -> None:
    finding = check_digits(rows().astype(np.float16).astype(np.float32))
    assert finding.state == "good" and finding.measurements["half_precision"]


@pytest.mark.parametrize("fill", [False, True])
def test_a_service_that_returns_only_the_best_classes_is_recognised(fill: bool) -> None:
    finding = check_completeness(only_best(rows(), 3, fill))
    assert finding.state == "caution" and finding.measurements["classes_returned"] == 3


def test_a_single_class_is_a_caution_with_or_without_its_confidence() -> None:
    probabilities = rows()
    classes = np.eye(8, dtype=np.float32)[probabilities.argmax(axis=1)]
    for returned in (classes, only_best(probabilities, 1, fill=True)):
        finding = check_completeness(returned)
        assert finding.state == "caution" and "soda-e" in finding.remedy
    assert "classes only" in check_digits(classes).sentence


def test_two_classes_are_never_called_incomplete() -> None:
    assert check_completeness(rows(classes=2)).state == "good"


def test_rounding_does_not_count_as_missing_classes() -> None:
    assert check_completeness(np.round(rows(), 2)).state == "good"


def test_equal_probabilities_for_all_classes_are_bad() -> None:
    assert check_completeness(np.full((50, 4), 0.25, np.float32)).state == "bad"


def test_saturation_depends_on_the_share_of_probabilities_that_are_one() -> None:
    probabilities = rows(100)
    saturated = np.eye(8, dtype=np.float32)[probabilities.argmax(axis=1)]
    states = [
        check_saturation(np.concatenate([saturated[:count], probabilities[count:]])).state
        for count in (10, 50, 95)
    ]
    assert states == ["good", "caution", "caution"]


def test_a_quantised_model_is_saturated_at_its_highest_value() -> None:
    exact = np.random.default_rng(0).dirichlet(np.full(200, 0.03), 60)
    rounded = (np.rint(exact * 256) / 256).astype(np.float32)
    rounded[:40] = 0
    rounded[:40, 0] = 255 / 256
    completed = check_probabilities(rounded, 60, None, logits=False, partial=True)
    finding = check_saturation(completed)
    assert finding.state == "caution" and "255/256, the highest value" in finding.sentence
    assert finding.measurements["share_saturated"] == pytest.approx(40 / 60)
    assert "float version" in check_digits(completed).remedy


def test_equal_responses_are_good() -> None:
    assert check_repeatability(rows(), rows() + 1e-7, None).state == "good"


def test_randomness_and_dependence_on_the_batch_are_distinguished() -> None:
    first = rows(seed=0)
    second = rows(seed=1)
    batch = check_repeatability(first, second, second)
    random = check_repeatability(first, second, rows(seed=2))
    assert batch.state == random.state == "bad"
    assert batch.measurements["depends_on_batch"] and "evaluation mode" in batch.remedy
    assert not random.measurements["depends_on_batch"] and "dropout" in random.remedy
    slight = check_repeatability(first, first + np.float32(1e-4), first)
    assert slight.state == "caution" and slight.measurements["share_changed"] == 0


@pytest.mark.parametrize("steps", [100, 256])
def test_completed_rows_do_not_hide_their_rounding(steps: int) -> None:
    exact = np.random.default_rng(0).dirichlet(np.full(200, 0.03), 60)
    rounded = (np.rint(exact * steps) / steps).astype(np.float32)
    completed = check_probabilities(rounded, 60, None, logits=False, partial=True)
    finding = check_digits(completed)
    assert finding.measurements["steps"] == steps
    assert finding.state == "caution"
    assert "rounded away" in check_completeness(completed).sentence
    assert "completed" in check_sums(completed, partial=True).sentence


def test_the_best_classes_of_an_exact_model_are_not_called_rounded() -> None:
    exact = np.random.default_rng(0).dirichlet(np.full(20, 0.5), 60).astype(np.float32)
    best = np.where(exact >= np.sort(exact, axis=1)[:, [-5]], exact, 0)
    completed = check_probabilities(best, 60, None, logits=False, partial=True)
    assert check_digits(completed).state == "good"
    assert "best 5 of 20" in check_completeness(completed).sentence

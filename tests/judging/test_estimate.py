"""Accuracy without labels: cases by hand, simulations and the stored benchmark."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.judging.estimate import (
    ONE_VIEW,
    SCALED,
    TWO_VIEWS,
    balanced_classes,
    estimate_accuracy,
)


def test_confident_and_balanced_predictions_are_all_correct() -> None:
    assert estimate_accuracy(np.tile(np.eye(4), (25, 1))).accuracy == pytest.approx(1)


def test_predictions_of_a_single_class_are_wrong_beyond_its_share() -> None:
    probabilities = np.tile([1.0, 0.0, 0.0, 0.0], (100, 1))
    assert estimate_accuracy(probabilities).accuracy == pytest.approx(0.25)


def test_shares_replace_equal_frequencies() -> None:
    probabilities = np.tile([1.0, 0.0, 0.0, 0.0], (100, 1))
    estimate = estimate_accuracy(probabilities, shares=np.array([0.75, 0.25, 0, 0]))
    assert estimate.accuracy == pytest.approx(0.75)


def test_the_estimate_by_hand() -> None:
    """Rows 2 and 3 cannot keep class 0; rows 0 and 1 count with their tempered confidence."""
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    assert balanced_classes(probabilities).tolist() == [0, 0, 1, 1]
    power = 1 / 1.25
    by_hand = sum(p**power / (p**power + (1 - p) ** power) for p in (0.9, 0.8)) / 4
    assert estimate_accuracy(probabilities).accuracy == pytest.approx(by_hand)


def test_with_a_second_view_its_probability_of_the_assigned_class_counts() -> None:
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    flipped = np.array([[0.5, 0.5], [0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    estimate = estimate_accuracy(probabilities, flipped=flipped)
    assert estimate.accuracy == pytest.approx((0.5 + 0.9 + 0.2 + 0.7) / 4)
    assert estimate.method == TWO_VIEWS.method


def test_a_known_clean_accuracy_scales_the_estimate() -> None:
    modest = np.tile(0.4 * np.eye(4) + 0.15, (25, 1))
    plain = estimate_accuracy(modest).accuracy
    on_clean = estimate_accuracy(modest, clean=modest, clean_accuracy=0.9)
    assert on_clean.accuracy == pytest.approx(0.9)
    less = np.tile(0.2 * np.eye(4) + 0.2, (25, 1))
    scaled = estimate_accuracy(less, clean=modest, clean_accuracy=0.9)
    assert scaled.accuracy == pytest.approx(0.9 * estimate_accuracy(less).accuracy / plain)
    assert scaled.method == SCALED.method
    with pytest.raises(ValueError, match="not a share"):
        estimate_accuracy(modest, clean=modest, clean_accuracy=90.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(2, 12), st.floats(0.05, 5), st.integers(0, 99))
def test_an_estimate_is_a_share_inside_its_interval(
    count: int, classes: int, spread: float, seed: int
) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, spread), count)
    estimate = estimate_accuracy(rows)
    assert 0 <= estimate.low <= estimate.accuracy <= estimate.high <= 1
    # never above the model's own mean confidence
    assert estimate.accuracy <= rows.max(axis=1).mean() + 1e-9
    assert "without labels" in estimate.sentence


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 99))
def test_no_class_is_assigned_more_than_its_share(classes: int, each: int, seed: int) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, 0.2), classes * each)
    assert (np.bincount(balanced_classes(rows), minlength=classes) == each).all()


def test_the_order_of_the_rows_does_not_matter_and_zeros_are_accepted() -> None:
    rows = np.round(np.random.default_rng(0).dirichlet(np.full(5, 0.1), 60), 1) + 1e-9
    order = np.random.default_rng(1).permutation(60)
    assert estimate_accuracy(rows).accuracy == pytest.approx(
        estimate_accuracy(rows[order]).accuracy, abs=0.02
    )


@pytest.mark.parametrize("favour", [0.0, 2.0, 4.0])
def test_a_favourite_class_misleads_it_less_than_mean_confidence(favour: float) -> None:
    """A model with noisy evidence that is over-confident and prefers one class under shift."""
    generator = np.random.default_rng(0)
    labels = np.arange(1000) % 5
    logits = 2.0 * (1.5 * np.eye(5)[labels] + generator.standard_normal((1000, 5)))
    logits[:, 0] += favour
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = float((rows.argmax(axis=1) == labels).mean())
    error = abs(estimate_accuracy(rows).accuracy - truth)
    assert error < abs(rows.max(axis=1).mean() - truth) and error < 0.1


def test_many_rows_are_sampled() -> None:
    rows = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 200_000)
    assert estimate_accuracy(rows).accuracy == pytest.approx(
        estimate_accuracy(rows[:1000]).accuracy, abs=0.05
    )
    assert estimate_accuracy(rows, seed=1) == estimate_accuracy(rows, seed=1)


def test_the_sentence_mentions_few_images_for_many_classes() -> None:
    assert "rough" in estimate_accuracy(np.full((10, 100), 0.01)).sentence


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((0, 3)),
        np.ones(4),
        np.ones((3, 1)),
        np.full((2, 2), np.nan),
        np.array([[-0.1, 1.1]]),
    ],
)
def test_invalid_probabilities_are_refused(rows) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        estimate_accuracy(rows)


def test_arrays_of_other_shapes_are_refused() -> None:
    rows = np.full((4, 2), 0.5)
    with pytest.raises(ValueError, match="must match"):
        estimate_accuracy(rows, flipped=rows[:3])
    with pytest.raises(ValueError, match="each of 2 classes"):
        estimate_accuracy(rows, shares=np.ones(3))


def test_the_stated_errors_are_those_of_the_benchmark() -> None:
    path = Path(__file__).parents[2] / "results" / "accuracy_estimates.json"
    table = {row["estimator"]: row for row in json.loads(path.read_text())["table"]}
    for estimator, name in (
        (ONE_VIEW, "balanced agreement, T=1.25"),
        (SCALED, "balanced agreement, scaled"),
        (TWO_VIEWS, "balanced agreement of two looks"),
    ):
        assert estimator.error == pytest.approx(table[name]["held_out"], abs=0.0006)
        assert estimator.margin == pytest.approx(table[name]["margin"], abs=0.0006)


def test_classes_without_probabilities_only_bound_the_accuracy() -> None:
    """Evenly predicted classes, independent of the images, may all be correct."""
    probabilities = np.eye(5)[np.arange(200) % 5]
    estimate = estimate_accuracy(probabilities)
    assert estimate.bound and estimate.low == 0 and estimate.accuracy == pytest.approx(1.0)
    assert "At most" in estimate.sentence
    assert estimate_accuracy(np.eye(5)[np.zeros(200, int)]).accuracy == pytest.approx(0.2, abs=0.05)
    assert not estimate_accuracy(0.9 * probabilities + 0.02).bound
    assert "equally frequent" in estimate.sentence and "rough" not in estimate.sentence
    many = estimate_accuracy(np.eye(100)[np.random.default_rng(0).integers(0, 100, 200)])
    assert many.high == 1 and "rough" in many.sentence  # by chance alone some classes are rare
    assert (
        estimate_accuracy(probabilities, clean=probabilities, clean_accuracy=0.5).accuracy
        == estimate.accuracy
    )

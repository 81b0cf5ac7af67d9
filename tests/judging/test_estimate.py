"""Accuracy without labels, against cases computed by hand, simulation and the stored benchmark."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.judging.estimate import (
    ONE_LOOK,
    SCALED,
    TWO_LOOKS,
    balanced_classes,
    estimate_accuracy,
    temper,
)


def test_sure_and_balanced_answers_are_all_right() -> None:
    assert estimate_accuracy(np.tile(np.eye(4), (25, 1))).accuracy == pytest.approx(1)


def test_of_answers_that_are_all_one_class_all_but_its_share_are_wrong() -> None:
    assert estimate_accuracy(np.tile([1.0, 0.0, 0.0, 0.0], (100, 1))).accuracy == pytest.approx(
        0.25
    )


def test_shares_say_how_frequent_classes_are() -> None:
    answers = np.tile([1.0, 0.0, 0.0, 0.0], (100, 1))
    assert estimate_accuracy(
        answers, shares=np.array([0.75, 0.25, 0, 0])
    ).accuracy == pytest.approx(0.75)


def test_a_hand_computed_case() -> None:
    """Rows 2 and 3 have to give up class 0; rows 0 and 1 count with their tempered confidence."""
    answers = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    assert balanced_classes(answers).tolist() == [0, 0, 1, 1]
    power = 1 / 1.25
    by_hand = sum(p**power / (p**power + (1 - p) ** power) for p in (0.9, 0.8)) / 4
    assert estimate_accuracy(answers).accuracy == pytest.approx(by_hand)


def test_a_second_look_counts_what_it_gives_the_assigned_class() -> None:
    answers = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    flipped = np.array([[0.5, 0.5], [0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    found = estimate_accuracy(answers, flipped=flipped)
    assert (
        found.accuracy == pytest.approx((0.5 + 0.9 + 0.2 + 0.7) / 4)
        and found.method == TWO_LOOKS.method
    )


def test_a_known_clean_accuracy_scales_the_estimate() -> None:
    modest = np.tile(0.4 * np.eye(4) + 0.15, (25, 1))
    plain = estimate_accuracy(modest).accuracy
    assert estimate_accuracy(modest, clean=modest, clean_accuracy=0.9).accuracy == pytest.approx(
        0.9
    )
    less = np.tile(0.2 * np.eye(4) + 0.2, (25, 1))
    scaled = estimate_accuracy(less, clean=modest, clean_accuracy=0.9)
    assert scaled.accuracy == pytest.approx(0.9 * estimate_accuracy(less).accuracy / plain)
    assert scaled.method == SCALED.method
    with pytest.raises(ValueError, match="no share"):
        estimate_accuracy(modest, clean=modest, clean_accuracy=90.0)


def test_temperature_one_changes_nothing_and_heat_evens_out() -> None:
    rows = np.array([[0.7, 0.2, 0.1]])
    assert temper(rows, 1) == pytest.approx(rows)
    assert temper(rows, 100)[0] == pytest.approx([1 / 3] * 3, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(2, 12), st.floats(0.05, 5), st.integers(0, 99))
def test_an_estimate_is_a_share_inside_its_interval(
    count: int, classes: int, spread: float, seed: int
) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, spread), count)
    found = estimate_accuracy(rows)
    assert 0 <= found.low <= found.accuracy <= found.high <= 1
    assert (
        found.accuracy <= rows.max(axis=1).mean() + 1e-9
    )  # never above what the model itself believes
    assert "without labels" in found.sentence


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 99))
def test_no_class_is_assigned_more_than_its_share(classes: int, each: int, seed: int) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, 0.2), classes * each)
    assert (np.bincount(balanced_classes(rows), minlength=classes) == each).all()


def test_rows_may_come_in_any_order_and_zeros_are_not_impossible() -> None:
    rows = np.round(np.random.default_rng(0).dirichlet(np.full(5, 0.1), 60), 1) + 1e-9
    order = np.random.default_rng(1).permutation(60)
    assert estimate_accuracy(rows).accuracy == pytest.approx(
        estimate_accuracy(rows[order]).accuracy, abs=0.02
    )


@pytest.mark.parametrize("favour", [0.0, 2.0, 4.0])
def test_a_favourite_class_does_not_fool_it_as_it_fools_confidence(favour: float) -> None:
    """A model that sees noisy evidence, is over-confident, and under shift prefers one class."""
    generator = np.random.default_rng(0)
    labels = np.arange(1000) % 5
    logits = 2.0 * (1.5 * np.eye(5)[labels] + generator.standard_normal((1000, 5)))
    logits[:, 0] += favour
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = float((rows.argmax(axis=1) == labels).mean())
    ours = abs(estimate_accuracy(rows).accuracy - truth)
    assert ours < abs(rows.max(axis=1).mean() - truth) and ours < 0.1


def test_a_million_rows_are_sampled() -> None:
    rows = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 200_000)
    assert estimate_accuracy(rows).accuracy == pytest.approx(
        estimate_accuracy(rows[:1000]).accuracy, abs=0.05
    )
    assert estimate_accuracy(rows, seed=1) == estimate_accuracy(rows, seed=1)


def test_few_images_for_many_classes_is_said() -> None:
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
def test_what_is_no_set_of_answers_is_refused(rows) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        estimate_accuracy(rows)


def test_wrong_companions_are_refused() -> None:
    rows = np.full((4, 2), 0.5)
    with pytest.raises(ValueError, match="must match"):
        estimate_accuracy(rows, flipped=rows[:3])
    with pytest.raises(ValueError, match="each of 2 classes"):
        estimate_accuracy(rows, shares=np.ones(3))


def test_the_errors_stated_are_those_of_the_benchmark() -> None:
    path = Path(__file__).parents[2] / "results" / "accuracy_estimates.json"
    table = {row["estimator"]: row for row in json.loads(path.read_text())["table"]}
    for measured, name in (
        (ONE_LOOK, "balanced agreement, T=1.25"),
        (SCALED, "balanced agreement, scaled"),
        (TWO_LOOKS, "balanced agreement of two looks"),
    ):
        assert measured.error == pytest.approx(table[name]["held_out"], abs=0.0006)
        assert measured.margin == pytest.approx(table[name]["margin"], abs=0.0006)


def test_classes_alone_bound_the_accuracy_and_tell_no_more() -> None:
    """Classes given evenly, whatever the images show: from them alone nothing speaks against their being right."""
    answers = np.eye(5)[np.arange(200) % 5]
    found = estimate_accuracy(answers)
    assert (
        found.bound
        and found.low == 0
        and found.accuracy == pytest.approx(1.0)
        and "At most" in found.sentence
    )
    assert estimate_accuracy(np.eye(5)[np.zeros(200, int)]).accuracy == pytest.approx(0.2, abs=0.05)
    assert not estimate_accuracy(0.9 * answers + 0.02).bound
    assert "equally frequent" in found.sentence and "rough" not in found.sentence
    many = estimate_accuracy(np.eye(100)[np.random.default_rng(0).integers(0, 100, 200)])
    assert many.high == 1 and "rough" in many.sentence  # by chance alone some classes are rare
    assert estimate_accuracy(answers, clean=answers, clean_accuracy=0.5).accuracy == found.accuracy

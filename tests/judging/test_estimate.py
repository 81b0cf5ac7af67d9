"""The accuracy without labels: an estimate where it was tested, a bound, or a reason."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.judging.balanced import fitted_temperature
from soda_tta.judging.estimate import (
    CALIBRATED,
    Estimate,
    NoEstimate,
    estimate_accuracy,
)
from soda_tta.objectives.tempering import tempered


def responses(
    count: int, classes: int = 10, evidence: float = 2.5, favour: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated responses to random classes, and those classes; `favour` prefers the first."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, count)
    logits = evidence * (evidence * np.eye(classes)[labels])
    logits = logits + evidence * generator.standard_normal((count, classes))
    logits[:, 0] += favour
    rows = np.exp(logits)
    return rows / rows.sum(axis=1, keepdims=True), labels


def accuracy(rows: np.ndarray, labels: np.ndarray) -> float:
    return float((rows.argmax(axis=1) == labels).mean())


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("classes", [10, 1000])
def test_clean_images_calibrate_an_estimate_for_any_confidence(
    temperature: float, classes: int
) -> None:
    """The same model with other confidences, as far from each other as networks and forests are."""
    evidence = 2.5 if classes == 10 else 4.5
    clean, clean_labels = responses(300, classes, evidence)
    shifted, labels = responses(300, classes, 0.7 * evidence, favour=3.0, seed=1)
    known = accuracy(clean, clean_labels)
    estimate = estimate_accuracy(
        tempered(shifted, 1 / temperature),
        clean=tempered(clean, 1 / temperature),
        clean_accuracy=known,
    )
    assert isinstance(estimate, Estimate) and not estimate.bound
    assert estimate.low <= accuracy(shifted, labels) <= estimate.high
    assert 0 <= estimate.low <= estimate.accuracy <= estimate.high <= 1
    assert "without labels" in estimate.sentence and estimate.method == CALIBRATED.method


@pytest.mark.parametrize(("classes", "images"), [(10, 500), (1000, 400)])
def test_without_clean_images_a_good_model_gets_no_number(classes: int, images: int) -> None:
    """A model that is 89 % right on few images of many classes was stated as 38 % (32 to 45)."""
    rows, _ = responses(images, classes, evidence=3.0)
    estimate = estimate_accuracy(rows)
    assert isinstance(estimate, NoEstimate)
    assert estimate.sentence.startswith("Not enough to estimate")
    assert "Clean images" in estimate.sentence and "labels" in estimate.sentence


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.floats(0.2, 3), st.floats(0, 8), st.integers(0, 99))
def test_a_bound_is_never_below_the_truth(
    classes: int, evidence: float, favour: float, seed: int
) -> None:
    rows, labels = responses(400, classes, evidence, favour, seed)
    estimate = estimate_accuracy(rows)
    if isinstance(estimate, Estimate):
        assert estimate.bound and estimate.low == 0 and estimate.error is None
        assert accuracy(rows, labels) <= estimate.high + 0.02
        assert "At most" in estimate.sentence and estimate.short.startswith("at most")


def test_a_bound_allows_classes_that_are_twice_as_frequent() -> None:
    labels = np.repeat(np.arange(10), [80, 80, 40, 40, 40, 40, 40, 40, 40, 40])
    all_right = np.eye(10)[labels] * 0.9 + 0.01
    assert isinstance(estimate_accuracy(all_right), NoEstimate)  # everything may be correct
    known = estimate_accuracy(np.eye(10)[np.zeros(400, int)], shares=[0.1, *[0.1] * 9])
    assert isinstance(known, Estimate) and 0.1 <= known.high < 0.2


def test_classes_without_probabilities_are_bounded_too() -> None:
    assert isinstance(estimate_accuracy(np.eye(5)[np.arange(200) % 5]), NoEstimate)
    one = estimate_accuracy(np.eye(5)[np.zeros(200, int)])
    assert isinstance(one, Estimate) and one.bound and one.high < 0.5
    rows = np.eye(10)[np.arange(200) % 10]
    informed = estimate_accuracy(rows, clean=rows, clean_accuracy=0.9)
    assert isinstance(informed, NoEstimate) and "exactly 1" in informed.sentence


@pytest.mark.parametrize(
    ("images", "clean", "classes", "reason"),
    [
        (99, 300, 10, "99 images are too few"),
        (300, 1, 10, "1 clean image"),
        (300, 300, 3, "5 to 1000 classes"),
    ],
)
def test_outside_of_what_was_tested_there_is_no_estimate(
    images: int, clean: int, classes: int, reason: str
) -> None:
    rows, _ = responses(images, classes)
    reference, _ = responses(clean, classes, seed=1)
    estimate = estimate_accuracy(rows, clean=reference, clean_accuracy=0.95)
    assert isinstance(estimate, NoEstimate) and reason in estimate.sentence


def test_unbalanced_clean_images_are_noticed() -> None:
    rows, _ = responses(400)
    labels = np.arange(400) % 3  # seven classes are absent
    clean = np.eye(10)[labels] * 0.9 + 0.01
    estimate = estimate_accuracy(rows, clean=clean, clean_accuracy=0.95)
    assert isinstance(estimate, NoEstimate) and "do not show all classes" in estimate.sentence


def test_temperatures() -> None:
    rows, labels = responses(500, evidence=2.0)
    known = accuracy(rows, labels)
    temperature = fitted_temperature(rows, known)
    assert tempered(rows, 1 / temperature).max(axis=1).mean() == pytest.approx(known, abs=1e-3)


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
def test_invalid_probabilities_are_refused(rows: np.ndarray) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        estimate_accuracy(rows)


def test_other_values_that_are_not_valid_are_refused() -> None:
    rows = np.full((4, 2), 0.5)
    with pytest.raises(ValueError, match="each of 2 classes"):
        estimate_accuracy(rows, shares=np.ones(3))
    with pytest.raises(ValueError, match="not a share"):
        estimate_accuracy(rows, clean=rows, clean_accuracy=90.0)
    with pytest.raises(ValueError, match="must match"):
        estimate_accuracy(rows, clean=np.full((4, 3), 1 / 3), clean_accuracy=0.9)


def test_the_stated_errors_are_those_of_the_benchmark_and_nine_of_ten_intervals_hold() -> None:
    path = Path(__file__).parents[2] / "results" / "estimate_coverage.json"
    results = json.loads(path.read_text())
    assert results["margin"] == pytest.approx(CALIBRATED.margin, abs=0.001)
    test = results["parts"]["test"]
    assert test["error"] == pytest.approx(CALIBRATED.error, abs=0.001)
    assert test["coverage"] >= 0.9 and test["bound coverage"] >= 0.9
    assert results["issue"]["the demo's digits in haze"]["shift"] == "haze"
    for row in results["issue"].values():
        assert row["low"] is None or row["low"] <= row["truth"] <= row["high"]

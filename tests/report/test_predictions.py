"""The statistics of a page, against their definitions."""

import numpy as np
import pytest

from soda_tta.objectives.equations import mutual_information
from soda_tta.report import predictions
from soda_tta.report.predictions import (
    accuracy,
    accuracy_gain,
    calibration,
    class_changes,
    confusion,
    mistakes,
    summarise,
    total_variation,
)


def test_the_result_does_not_depend_on_the_size_of_the_blocks(monkeypatch) -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.ones(5), 1000).astype(np.float32)
    in_one = summarise(probabilities)
    assert in_one.mutual_information == pytest.approx(mutual_information(probabilities))
    monkeypatch.setattr(predictions, "BLOCK", 35)  # seven rows, of which 1,000 is not a multiple
    in_blocks = summarise(probabilities)
    np.testing.assert_array_equal(in_one.classes, in_blocks.classes)
    np.testing.assert_array_equal(in_one.confidence, probabilities.max(axis=1))
    assert in_blocks.mutual_information == pytest.approx(in_one.mutual_information)
    assert in_one.per_class.sum() == 1000
    other = probabilities[::-1]
    expected = np.abs(probabilities - other).sum(1) / 2
    np.testing.assert_allclose(total_variation(probabilities, other), expected, rtol=1e-5)


def test_wilsons_interval_is_the_published_one() -> None:
    # Newcombe (1998), table 1: 81 of 263 gives 0.2553 to 0.3662
    share = accuracy(np.array([True] * 81 + [False] * 182))
    assert share.low == pytest.approx(0.2553, abs=1e-4)
    assert share.high == pytest.approx(0.3662, abs=1e-4)
    three_of_three = accuracy(np.ones(3, bool))
    assert three_of_three.high == 1 and three_of_three.low < 0.5


def test_the_interval_of_a_gain_covers_the_true_gain() -> None:
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        before = generator.random(300) < 0.5
        after = np.where(before, generator.random(300) < 0.95, generator.random(300) < 0.2)
        gain = accuracy_gain(before, after)
        covered += gain.low <= 0.5 * 0.2 - 0.5 * 0.05 <= gain.high
    assert 0.92 <= covered / 400 <= 0.99
    no_gain = accuracy_gain(np.ones(3, bool), np.ones(3, bool))
    assert no_gain.low < 0 < no_gain.high


def test_the_calibration_error_is_zero_for_a_calibrated_model_only() -> None:
    generator = np.random.default_rng(2)
    confidence = generator.uniform(0.2, 1, 200_000)
    assert calibration(confidence, generator.random(len(confidence)) < confidence).error < 0.01
    over_confident = calibration(np.full(1000, 0.9), np.arange(1000) < 600)
    assert over_confident.error == pytest.approx(0.3)
    assert over_confident.accuracy.tolist() == [pytest.approx(0.6)]
    # a confidence of exactly 1 belongs to the last bin
    assert calibration(np.ones(4), np.ones(4, bool)).error == 0


def test_classes_and_mistakes_are_counted() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    before = np.array([0, 1, 1, 1, 1, 0])
    after = np.array([0, 0, 1, 0, 1, 0])
    changes = class_changes(labels, before == labels, after == labels, width=4)
    assert [(c.index, c.images, round(c.gain, 3)) for c in changes] == [
        (0, 3, 0.333),
        (2, 1, 0.0),
        (1, 2, -0.5),
    ]
    np.testing.assert_array_equal(confusion(labels, before, 3), [[1, 2, 0], [0, 2, 0], [1, 0, 0]])
    counts = {
        (mistake.true, mistake.predicted): (mistake.before, mistake.after)
        for mistake in mistakes(labels, before, after, 3)
    }
    assert counts == {(0, 1): (2, 1), (1, 0): (0, 1), (2, 0): (1, 1)}


def test_mistakes_of_very_many_classes_need_no_matrix() -> None:
    classes = 200_000  # their confusion matrix would not fit in memory
    labels = np.arange(100) * 2000
    first = mistakes(labels, labels + 1, labels, classes)[0]
    assert (first.predicted - first.true, first.before, first.after) == (1, 1, 0)

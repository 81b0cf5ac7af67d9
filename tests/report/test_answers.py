"""Numbers on the page, against what they are defined to be."""

import numpy as np
import pytest

from soda_tta.objectives.equations import mutual_information
from soda_tta.report import answers
from soda_tta.report.answers import (
    calibration,
    class_changes,
    confusion,
    gain_of,
    mistakes,
    moved,
    reduce_answers,
    share_right,
)


def test_pieces_change_nothing(monkeypatch) -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.ones(5), 1000).astype(np.float32)
    whole = reduce_answers(probabilities)
    assert whole.mutual_information == pytest.approx(mutual_information(probabilities))
    monkeypatch.setattr(answers, "PIECE", 35)  # seven rows at a time: 1,000 is no multiple
    pieced = reduce_answers(probabilities)
    np.testing.assert_array_equal(whole.classes, pieced.classes)
    np.testing.assert_array_equal(whole.confidence, probabilities.max(axis=1))
    assert pieced.mutual_information == pytest.approx(whole.mutual_information)
    assert whole.per_class.sum() == 1000
    other = probabilities[::-1]
    np.testing.assert_allclose(
        moved(probabilities, other), np.abs(probabilities - other).sum(1) / 2, rtol=1e-5
    )


def test_wilsons_interval_is_the_published_one() -> None:
    right = np.array(
        [True] * 81 + [False] * 182
    )  # Newcombe (1998), table 1: 81 of 263 -> 0.2553 to 0.3662
    share = share_right(right)
    assert (share.low, share.high) == (
        pytest.approx(0.2553, abs=1e-4),
        pytest.approx(0.3662, abs=1e-4),
    )
    certain = share_right(np.ones(3, bool))
    assert certain.high == 1 and certain.low < 0.5  # three of three prove little


def test_the_interval_of_a_gain_covers_the_truth() -> None:
    generator, covered = np.random.default_rng(1), 0
    for _ in range(400):
        before = generator.random(300) < 0.5
        after = np.where(before, generator.random(300) < 0.95, generator.random(300) < 0.2)
        gain = gain_of(before, after)
        covered += gain.low <= 0.5 * 0.2 - 0.5 * 0.05 <= gain.high
    assert 0.92 <= covered / 400 <= 0.99
    nothing = gain_of(np.ones(3, bool), np.ones(3, bool))
    assert nothing.low < 0 < nothing.high


def test_a_calibrated_model_has_no_calibration_error_and_a_boastful_one_has() -> None:
    generator = np.random.default_rng(2)
    sure = generator.uniform(0.2, 1, 200_000)
    assert calibration(sure, generator.random(len(sure)) < sure).error < 0.01
    boastful = calibration(np.full(1000, 0.9), np.arange(1000) < 600)
    assert boastful.error == pytest.approx(0.3) and boastful.accuracy.tolist() == [
        pytest.approx(0.6)
    ]
    assert (
        calibration(np.ones(4), np.ones(4, bool)).error == 0
    )  # confidence 1 falls into the last bin


def test_classes_and_mistakes_are_counted() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    before, after = np.array([0, 1, 1, 1, 1, 0]), np.array([0, 0, 1, 0, 1, 0])
    changes = class_changes(labels, before == labels, after == labels, width=4)
    assert [(c.index, c.images, round(c.gain, 3)) for c in changes] == [
        (0, 3, 0.333),
        (2, 1, 0.0),
        (1, 2, -0.5),
    ]
    np.testing.assert_array_equal(confusion(labels, before, 3), [[1, 2, 0], [0, 2, 0], [1, 0, 0]])
    found = {(m.true, m.given): (m.before, m.after) for m in mistakes(labels, before, after, 3)}
    assert found == {(0, 1): (2, 1), (1, 0): (0, 1), (2, 0): (1, 1)}


def test_mistakes_of_very_many_classes_need_no_matrix() -> None:
    classes = 200_000  # a matrix of them would not fit in memory
    labels = np.arange(100) * 2000
    (first, *_) = mistakes(labels, labels + 1, labels, classes)
    assert (first.given - first.true, first.before, first.after) == (1, 1, 0)

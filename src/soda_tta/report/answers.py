"""What a set of answers comes to, before and after. Probabilities are walked through in pieces: a million rows fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from soda_tta.judging.certificate import paired_interval
from soda_tta.objectives.equations import entropy
from soda_tta.types import Array

PIECE = 2**21  # probabilities looked at together: 16 MB as float64
BINS = 15  # of confidence, for the expected calibration error
SURE = 1.96  # standard deviations on either side of a 95 % interval


@dataclass(frozen=True)
class Answers:
    """One pass over the images, reduced to what a page needs of each row."""

    classes: Array  # the class given to each image
    confidence: Array  # and its probability
    per_class: Array  # how often each class was given
    mutual_information: float  # over all images

    @property
    def mean_confidence(self) -> float:
        return float(self.confidence.mean())


def reduce_answers(probabilities: Array) -> Answers:
    """Classes, confidences and the mutual information of all answers."""
    count, width = probabilities.shape
    classes, confidence = np.empty(count, np.int32), np.empty(count, np.float32)
    total, disorder = np.zeros(width), 0.0
    for place in pieces(count, width):
        rows = probabilities[place]
        classes[place], confidence[place] = rows.argmax(axis=1), rows.max(axis=1)
        total += rows.sum(axis=0, dtype=np.float64)
        disorder += float(entropy(rows).sum())
    information = float(entropy(total / count)) - disorder / count
    return Answers(classes, confidence, np.bincount(classes, minlength=width), information)


def pieces(count: int, width: int) -> Iterator[slice]:
    step = max(1, PIECE // width)
    return (slice(start, start + step) for start in range(0, count, step))


def moved(before: Array, after: Array) -> Array:
    """How far each answer moved: half the sum of absolute differences, 0 for the same, 1 for certainty elsewhere."""
    distance = np.empty(len(before), np.float32)
    for place in pieces(*before.shape):
        distance[place] = 0.5 * np.abs(after[place] - before[place]).sum(axis=1)
    return distance


@dataclass(frozen=True)
class Share:
    """A share of 1 with its 95 % interval."""

    value: float
    low: float
    high: float


def share_right(right: Array) -> Share:
    """The accuracy, with Wilson's interval: it stays inside [0, 1] and is honest for three images."""
    count, value = len(right), float(right.mean())
    centre = (value + SURE**2 / (2 * count)) / (1 + SURE**2 / count)
    half = (
        SURE
        / (1 + SURE**2 / count)
        * np.sqrt(value * (1 - value) / count + SURE**2 / (4 * count**2))
    )
    return Share(value, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def gain_of(right_before: Array, right_after: Array) -> Share:
    """After minus before, image by image, with the interval of a certificate."""
    low, high = paired_interval(right_before, right_after)
    return Share(float(right_after.mean() - right_before.mean()), low, high)


@dataclass(frozen=True)
class Calibration:
    """Confidence against accuracy, in bins of equal width; empty bins are left out."""

    confidence: Array
    accuracy: Array
    count: Array
    error: float  # expected calibration error: the mean gap, weighted by count


def calibration(confidence: Array, right: Array) -> Calibration:
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(place, minlength=BINS)
    filled = count > 0
    sure = np.bincount(place, confidence, BINS)[filled] / count[filled]
    true = np.bincount(place, right, BINS)[filled] / count[filled]
    error = float((np.abs(sure - true) * count[filled]).sum() / len(right))
    return Calibration(sure, true, count[filled], error)


def confusion(labels: Array, given: Array, width: int) -> Array:
    """Rows: the true class; columns: the class given."""
    return np.bincount(labels * width + given, minlength=width * width).reshape(width, width)


@dataclass(frozen=True)
class Mistake:
    """One class taken for another, so many times before and after."""

    true: int
    given: int
    before: int
    after: int


def mistakes(
    labels: Array, before: Array, after: Array, width: int, most: int = 10
) -> list[Mistake]:
    """The mistakes that are made most often, before and after together; needs no matrix of all classes."""
    found: dict[tuple[int, int], list[int]] = {}
    for moment, given in enumerate((before, after)):
        wrong = given != labels
        pairs, counts = np.unique(
            labels[wrong] * np.int64(width) + given[wrong], return_counts=True
        )
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            found.setdefault(divmod(pair, width), [0, 0])[moment] = count
    ordered = sorted(found.items(), key=lambda item: -sum(item[1]))[:most]
    return [Mistake(true, given, *counts) for (true, given), counts in ordered]


@dataclass(frozen=True)
class ClassChange:
    """How one class fared."""

    index: int
    images: int
    before: float  # share right
    after: float

    @property
    def gain(self) -> float:
        return self.after - self.before


def class_changes(
    labels: Array, right_before: Array, right_after: Array, width: int
) -> list[ClassChange]:
    """Every class that has a labelled image, the one that gained most first."""
    images = np.bincount(labels, minlength=width)
    before, after = (
        np.bincount(labels, right_before, width),
        np.bincount(labels, right_after, width),
    )
    changes = [
        ClassChange(
            int(c), int(images[c]), float(before[c] / images[c]), float(after[c] / images[c])
        )
        for c in np.flatnonzero(images)
    ]
    return sorted(changes, key=lambda change: -change.gain)

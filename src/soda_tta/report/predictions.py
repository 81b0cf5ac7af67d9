"""Statistics of predictions before and after adapting.

Probabilities are processed in blocks of rows, so that a million images fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from soda_tta.judging.certificate import paired_interval
from soda_tta.objectives.equations import entropy
from soda_tta.types import Array

BLOCK = 2**21  # probabilities per block: 16 MB as float64
BINS = 15  # confidence bins of the expected calibration error
Z_95 = 1.96  # standard deviations on either side of a 95 % interval


@dataclass(frozen=True)
class Predictions:
    """One pass over the images, reduced to what a page needs of each row."""

    classes: Array  # the predicted class of each image
    confidence: Array  # the probability of that class
    per_class: Array  # how often each class was predicted
    mutual_information: float  # over all images, in nats

    @property
    def mean_confidence(self) -> float:
        return float(self.confidence.mean())


def summarise(probabilities: Array) -> Predictions:
    """Classes, confidences and the mutual information of all rows."""
    count, width = probabilities.shape
    classes = np.empty(count, np.int32)
    confidence = np.empty(count, np.float32)
    total = np.zeros(width)
    total_entropy = 0.0
    for block in blocks(count, width):
        rows = probabilities[block]
        classes[block] = rows.argmax(axis=1)
        confidence[block] = rows.max(axis=1)
        total += rows.sum(axis=0, dtype=np.float64)
        total_entropy += float(entropy(rows).sum())
    information = float(entropy(total / count)) - total_entropy / count
    return Predictions(classes, confidence, np.bincount(classes, minlength=width), information)


def blocks(count: int, width: int) -> Iterator[slice]:
    """Slices of rows with about BLOCK probabilities each."""
    step = max(1, BLOCK // width)
    return (slice(start, start + step) for start in range(0, count, step))


def total_variation(before: Array, after: Array) -> Array:
    """The distance between the two rows of each image.

    Half the sum of absolute differences: 0 for equal rows, 1 for rows certain of different classes.
    """
    distance = np.empty(len(before), np.float32)
    for block in blocks(*before.shape):
        distance[block] = 0.5 * np.abs(after[block] - before[block]).sum(axis=1)
    return distance


@dataclass(frozen=True)
class Proportion:
    """A proportion between 0 and 1, or a difference of two, with its 95 % interval."""

    value: float
    low: float
    high: float


def accuracy(correct: Array) -> Proportion:
    """The share of correct predictions with Wilson's interval.

    Wilson's interval stays inside [0, 1] and keeps its level for as few as three images.

    >>> accuracy(np.array([True, True, True])).high
    1.0
    """
    count = len(correct)
    value = float(correct.mean())
    scale = 1 + Z_95**2 / count
    centre = (value + Z_95**2 / (2 * count)) / scale
    half = Z_95 / scale * np.sqrt(value * (1 - value) / count + Z_95**2 / (4 * count**2))
    return Proportion(value, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def accuracy_gain(correct_before: Array, correct_after: Array) -> Proportion:
    """Accuracy after minus before on the same images, with the interval of a certificate."""
    low, high = paired_interval(correct_before, correct_after)
    return Proportion(float(correct_after.mean() - correct_before.mean()), low, high)


@dataclass(frozen=True)
class Calibration:
    """Accuracy against confidence in bins of equal width; empty bins are left out."""

    confidence: Array
    accuracy: Array
    count: Array
    error: float  # expected calibration error: the mean gap, weighted by the number of images


def calibration(confidence: Array, correct: Array) -> Calibration:
    """The reliability curve and the expected calibration error."""
    bin_of = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(bin_of, minlength=BINS)
    filled = count > 0
    mean_confidence = np.bincount(bin_of, confidence, BINS)[filled] / count[filled]
    mean_accuracy = np.bincount(bin_of, correct, BINS)[filled] / count[filled]
    gaps = np.abs(mean_confidence - mean_accuracy)
    error = float((gaps * count[filled]).sum() / len(correct))
    return Calibration(mean_confidence, mean_accuracy, count[filled], error)


def confusion(labels: Array, predicted: Array, width: int) -> Array:
    """The confusion matrix: rows are true classes, columns are predicted classes."""
    counts = np.bincount(labels * width + predicted, minlength=width * width)
    return counts.reshape(width, width)


@dataclass(frozen=True)
class Mistake:
    """How often one class was predicted for another, before and after."""

    true: int
    predicted: int
    before: int
    after: int


def mistakes(
    labels: Array, before: Array, after: Array, width: int, most: int = 10
) -> list[Mistake]:
    """The most frequent mistakes, before and after together, without a matrix of all classes."""
    counts_by_pair: dict[tuple[int, int], list[int]] = {}
    for moment, predicted in enumerate((before, after)):
        wrong = predicted != labels
        codes = labels[wrong] * np.int64(width) + predicted[wrong]
        pairs, counts = np.unique(codes, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            counts_by_pair.setdefault(divmod(pair, width), [0, 0])[moment] = count
    ordered = sorted(counts_by_pair.items(), key=lambda item: -sum(item[1]))[:most]
    return [Mistake(true, predicted, *counts) for (true, predicted), counts in ordered]


@dataclass(frozen=True)
class ClassChange:
    """The accuracy of one class, before and after."""

    index: int
    images: int
    before: float
    after: float

    @property
    def gain(self) -> float:
        return self.after - self.before


def class_changes(
    labels: Array, correct_before: Array, correct_after: Array, width: int
) -> list[ClassChange]:
    """Every class that has a labelled image, largest gain first."""
    images = np.bincount(labels, minlength=width)
    before = np.bincount(labels, correct_before, width)
    after = np.bincount(labels, correct_after, width)
    changes = [
        ClassChange(
            index=int(c),
            images=int(images[c]),
            before=float(before[c] / images[c]),
            after=float(after[c] / images[c]),
        )
        for c in np.flatnonzero(images)
    ]
    return sorted(changes, key=lambda change: -change.gain)

"""How many answers are right, guessed from the answers alone.

Mean confidence is of little use here: a model is over-confident exactly where images are shifted, and it then gives
most of them a few favourite classes. So every image is first assigned a class such that all classes are equally
frequent and the whole is as likely as can be. Where that agrees with the model's answer, the answer counts with its
(tempered) confidence; where it does not, the answer counts nothing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.types import Array

TEMPERATURE = 1.25  # chosen, as all of this, on six corruptions (benchmarks/accuracy_estimates.py)
MOST_ROWS = 1000  # more are sampled: the assignment takes time with the cube of their number
LEAST_LIKELY = 1e-7  # a zero of a model that rounds is not impossible
FEW_A_CLASS = (
    5  # with fewer images a class, equally frequent classes are a poor description of any sample
)
EXACT, MOSTLY = (
    1e-6,
    0.8,
)  # this near to one, for so large a share of the images, answers are classes
ONLY_CLASSES = (
    "At most about {:.0%} of the answers are right if the classes are equally frequent among these images, estimated "
    "without labels by how often each is given: nearly all answers are exactly one, and tell no more.{}"
)
ROUGH = " There are few images for so many classes: take it as rough."


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the benchmark says of a way to estimate, on the corruptions it was not chosen on."""

    method: str
    error: float  # mean absolute
    margin: float  # nine of ten errors are smaller


# results/accuracy_estimates.json; a test compares
ONE_LOOK = Measured(method="balanced agreement", error=0.025, margin=0.051)
SCALED = Measured(
    method="balanced agreement, scaled to the clean accuracy", error=0.035, margin=0.067
)
TWO_LOOKS = Measured(method="balanced agreement of two looks", error=0.023, margin=0.042)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A label-free estimate of accuracy, with an interval that held nine times of ten on the benchmark; shares of 1."""

    accuracy: float
    low: float
    high: float
    method: str
    sentence: str  # what it is, how far to trust it and when it fails
    error: float  # mean absolute error of the method on the benchmark
    bound: bool = False  # the answers are classes without probabilities: accuracy is at most that, if classes are even

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def estimate_accuracy(
    probabilities: Array,
    *,
    flipped: Array | None = None,
    shares: Array | None = None,
    clean: Array | None = None,
    clean_accuracy: float | None = None,
    seed: int = 0,
) -> Estimate:
    """The share of right answers, from the answers alone.

    `flipped`: the answers to the same images mirrored left to right, where that changes no class; a second query an
    image makes the estimate better. `shares`: how frequent each class is, if they are not equally frequent.
    `clean` and `clean_accuracy`: the answers to images that are not shifted, and how many of such the model is known
    to get right; the estimate is then scaled to be true there, which a model that is too modest needs.

    >>> answers = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.55, 0.45]])     # all class 0: half must be wrong
    >>> round(estimate_accuracy(answers).accuracy, 2)
    0.43
    """
    rows = check_rows(probabilities)
    if flipped is not None and np.shape(flipped) != rows.shape:
        raise ValueError(
            f"flipped has shape {np.shape(flipped)}, the answers {rows.shape}; they must match."
        )
    chosen = np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS]
    rows = rows[np.sort(chosen)]
    assigned = balanced_classes(rows, shares)
    if flipped is None:
        accuracy, measured = balanced_agreement(rows, assigned), ONE_LOOK
    else:
        second = check_rows(flipped)[np.sort(chosen)]
        accuracy, measured = float(second[np.arange(len(second)), assigned].mean()), TWO_LOOKS
    only_classes = classes_alone(rows)
    if clean is not None and clean_accuracy is not None and not only_classes:
        usual = estimate_accuracy(clean, shares=shares, seed=seed).accuracy
        accuracy, measured = (
            scale(balanced_agreement(rows, assigned), usual, clean_accuracy),
            SCALED,
        )
    margin = half_width(accuracy, len(rows), measured)
    low, high = max(0.0, accuracy - margin), min(1.0, accuracy + margin)
    few = len(rows) < FEW_A_CLASS * rows.shape[1]
    if only_classes:
        return Estimate(
            accuracy=accuracy,
            low=0.0,
            high=1.0 if few else high,
            method="balance of the classes",
            sentence=ONLY_CLASSES.format(accuracy, ROUGH if few else ""),
            error=accuracy,
            bound=True,
        )
    return Estimate(
        accuracy=accuracy,
        low=low,
        high=high,
        method=measured.method,
        sentence=sentence(accuracy, low, high, measured, few),
        error=measured.error,
    )


def classes_alone(rows: Array) -> bool:
    """Whether nearly all answers are exactly one: how many are right cannot be told from such."""
    return float(np.mean(rows.max(axis=1) >= 1 - EXACT)) > MOSTLY


def half_width(accuracy: float, images: int, measured: Measured) -> float:
    """Of the interval: the method's own error and that of a sample, as if independent; nine of ten of either."""
    return math.hypot(measured.margin, 1.645 * math.sqrt(accuracy * (1 - accuracy) / images))


def sentence(accuracy: float, low: float, high: float, measured: Measured, few: bool) -> str:
    rough = ROUGH if few else ""
    return (
        f"About {accuracy:.0%} of the answers are right ({low:.0%} to {high:.0%}), estimated without labels by "
        f"{measured.method}, which was {100 * measured.error:.1f} points off on average on CIFAR-C. It takes the "
        f"classes to be equally frequent and fails where they are not, or where images show none of the classes.{rough}"
    )


def scale(accuracy: float, usual: float, clean_accuracy: float) -> float:
    """An estimate in proportion to what the same estimator says of images whose accuracy is known."""
    if not 0 < clean_accuracy <= 1:
        raise ValueError(
            f"a clean accuracy of {clean_accuracy:g} is no share; give more than 0 and at most 1."
        )
    return min(1.0, accuracy * clean_accuracy / max(usual, 1e-9))


def balanced_agreement(rows: Array, assigned: Array, temperature: float = TEMPERATURE) -> float:
    """The mean tempered confidence, counting only answers that are the assigned class."""
    tempered = temper(rows, temperature)[np.arange(len(rows)), assigned]
    return float((tempered * (rows.argmax(axis=1) == assigned)).mean())


def balanced_classes(rows: Array, shares: Array | None = None) -> Array:
    """A class for every row, such that no class is more frequent than its share and the likelihood is greatest.

    >>> balanced_classes(np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.9, 0.1]])).tolist()
    [0, 1, 1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    count, classes = rows.shape
    even = np.full(classes, 1 / classes) if shares is None else check_shares(shares, classes)
    places = np.repeat(np.arange(classes), np.ceil(count * even - 1e-9).astype(int))
    likelihood = np.log(rows + LEAST_LIKELY)
    images, taken = linear_sum_assignment(likelihood[:, places], maximize=True)
    assigned = np.empty(count, np.int64)
    assigned[images] = places[taken]
    return assigned


def temper(rows: Array, temperature: float) -> Array:
    """What a softmax of that temperature would have answered."""
    powered: Array = np.power(rows, 1 / temperature)
    powered /= powered.sum(axis=1, keepdims=True)
    return powered


def check_rows(probabilities: Array) -> Array:
    rows: Array = np.array(probabilities, np.float64)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] < 2:
        raise ValueError(
            f"probabilities of shape {rows.shape}; give one row an image, one column a class."
        )
    if not (np.isfinite(rows).all() and rows.min() >= 0 and rows.sum(axis=1).min() > 0):
        raise ValueError(
            "probabilities are finite and not negative, and no row is all zero; check the model's answers."
        )
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


def check_shares(shares: Array, classes: int) -> Array:
    exact: Array = np.array(shares, np.float64)
    if exact.shape != (classes,) or not exact.min() >= 0 or not 0 < exact.sum() < math.inf:
        raise ValueError(
            f"shares of shape {exact.shape}; give one number of 0 or more for each of {classes} classes."
        )
    exact /= exact.sum()
    return exact

"""How many predictions are correct, estimated from the probabilities alone.

Mean confidence is of little use here. A model is over-confident exactly where images are shifted,
and it then assigns most of them to a few favourite classes. So every image is first assigned a
class such that all classes are equally frequent and the whole is as likely as possible. Where that
agrees with the model's prediction, the prediction counts with its (tempered) confidence. Where it
does not, the prediction counts nothing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

TEMPERATURE = 1.25  # chosen, as all of this, on six corruptions (benchmarks/accuracy_estimates.py)
MOST_ROWS = 1000  # more are sampled: the time of the assignment grows with the cube of their number
LEAST_LIKELY = 1e-7  # a zero of a model that rounds its responses is not impossible
# With fewer images per class, equally frequent classes are a poor description of any sample.
FEW_PER_CLASS = 5
EXACT = 1e-6  # a probability this close to 1 is a class without a probability ...
MOSTLY = 0.8  # ... and the model returns only classes if it does so for this share of the images
NORMAL_95 = 1.645  # nine tenths of a normal distribution lie within this many deviations
ONLY_CLASSES = (
    "At most about {:.0%} of the predictions are correct if the classes are equally frequent among "
    "these images, estimated without labels from how often each class is predicted: nearly all "
    "probabilities are exactly 1, and say no more than that.{}"
)
ROUGH = " There are few images for so many classes: this is a rough estimate."


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """A way to estimate accuracy, with its errors on the benchmark's held-out corruptions.

    Parameters
    ----------
    method : str
        Its name.
    error : float
        Mean absolute error, as a share of 1.
    margin : float
        Nine of ten errors are smaller, as a share of 1.
    """

    method: str
    error: float
    margin: float


# The errors are those in results/accuracy_estimates.json; a test compares them.
ONE_VIEW = Estimator(method="balanced agreement", error=0.025, margin=0.051)
SCALED = Estimator(
    method="balanced agreement, scaled to the clean accuracy", error=0.035, margin=0.067
)
TWO_VIEWS = Estimator(method="balanced agreement of two views", error=0.023, margin=0.042)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate of accuracy without labels. All numbers are shares of 1.

    Parameters
    ----------
    accuracy : float
        The estimate.
    low, high : float
        An interval that contained the truth nine times out of ten on the benchmark.
    method : str
        Name of the estimator.
    sentence : str
        What was estimated, how far to trust it and when it fails.
    error : float
        Mean absolute error of the method on the benchmark.
    bound : bool, default False
        The model returns classes without probabilities. `accuracy` is then an upper bound, valid if
        the classes are equally frequent.
    """

    accuracy: float
    low: float
    high: float
    method: str
    sentence: str
    error: float
    bound: bool = False

    def facts(self) -> dict[str, Any]:
        """All fields, as plain JSON."""
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
    """Estimate the share of correct predictions from the probabilities alone.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
        Responses of the model, one row per image.
    flipped : array of shape (n, classes), optional
        Responses to the same images mirrored left to right, where that changes no class. This
        second query per image makes the estimate better.
    shares : array of shape (classes,), optional
        How frequent each class is. By default all classes are equally frequent.
    clean : array of shape (m, classes), optional
        Responses to images that are not shifted.
    clean_accuracy : float in (0, 1], optional
        The known accuracy on such images. With `clean` it scales the estimate to be correct there,
        which an under-confident model needs.
    seed : int, default 0
        Chooses the rows if there are more than 1,000.

    Examples
    --------
    All four predictions are class 0, so half of them must be wrong:

    >>> probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.55, 0.45]])
    >>> round(estimate_accuracy(probabilities).accuracy, 2)
    0.43
    """
    rows = check_rows(probabilities)
    if flipped is not None and np.shape(flipped) != rows.shape:
        raise ValueError(
            f"flipped has shape {np.shape(flipped)}, probabilities {rows.shape}; they must match."
        )
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS])
    rows = rows[chosen]
    assigned = balanced_classes(rows, shares)
    estimator = ONE_VIEW
    accuracy = balanced_agreement(rows, assigned)
    only_classes = classes_alone(rows)
    if clean is not None and clean_accuracy is not None and not only_classes:
        on_clean = estimate_accuracy(clean, shares=shares, seed=seed).accuracy
        estimator = SCALED
        accuracy = scale(accuracy, on_clean, clean_accuracy)
    elif flipped is not None:
        second = check_rows(flipped)[chosen]
        estimator = TWO_VIEWS
        accuracy = float(second[np.arange(len(second)), assigned].mean())
    return _with_interval(accuracy, rows, estimator, only_classes)


def _with_interval(
    accuracy: float, rows: Array, estimator: Estimator, only_classes: bool
) -> Estimate:
    """An accuracy with its interval and its sentence."""
    margin = half_width(accuracy, len(rows), estimator)
    low = max(0.0, accuracy - margin)
    high = min(1.0, accuracy + margin)
    few = len(rows) < FEW_PER_CLASS * rows.shape[1]
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
        method=estimator.method,
        sentence=sentence(accuracy, low, high, estimator, few),
        error=estimator.error,
    )


def classes_alone(rows: Array) -> bool:
    """Whether nearly all rows have a probability of exactly 1: they do not tell how many are right.

    >>> classes_alone(np.eye(3)), classes_alone(np.full((3, 2), 0.5))
    (True, False)
    """
    return float(np.mean(rows.max(axis=1) >= 1 - EXACT)) > MOSTLY


def half_width(accuracy: float, images: int, estimator: Estimator) -> float:
    """Half of the interval: the estimator's own error and the sampling error, as if independent.

    Either part covers nine of ten cases.
    """
    sampling = NORMAL_95 * math.sqrt(accuracy * (1 - accuracy) / images)
    return math.hypot(estimator.margin, sampling)


def sentence(accuracy: float, low: float, high: float, estimator: Estimator, few: bool) -> str:
    """The estimate for a person: what it is, how far to trust it and when it fails."""
    rough = ROUGH if few else ""
    return (
        f"About {accuracy:.0%} of the predictions are correct ({low:.0%} to {high:.0%}), estimated "
        f"without labels by {estimator.method}, which was off by {100 * estimator.error:.1f} "
        "points on average on CIFAR-C. It assumes that the classes are equally frequent. It fails "
        f"where they are not, or where images show none of the classes.{rough}"
    )


def scale(accuracy: float, on_clean: float, clean_accuracy: float) -> float:
    """Scale an estimate so that `on_clean`, its value for clean images, becomes their accuracy."""
    if not 0 < clean_accuracy <= 1:
        raise ValueError(
            f"clean_accuracy={clean_accuracy:g} is not a share; give more than 0 and at most 1."
        )
    return min(1.0, accuracy * clean_accuracy / max(on_clean, 1e-9))


def balanced_agreement(rows: Array, assigned: Array, temperature: float = TEMPERATURE) -> float:
    """The mean tempered confidence, counting only predictions that are the assigned class.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities.
    assigned : integer array of shape (n,)
        The class assigned to each row by `balanced_classes`.
    temperature : float, default 1.25
        Of the confidence; above 1 lowers it.
    """
    confidence = tempered(rows, 1 / temperature)[np.arange(len(rows)), assigned]
    return float((confidence * (rows.argmax(axis=1) == assigned)).mean())


def balanced_classes(rows: Array, shares: Array | None = None) -> Array:
    """The most likely class for every row such that no class exceeds its share.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities.
    shares : array of shape (classes,), optional
        How frequent each class is; by default all are equally frequent.

    Examples
    --------
    >>> balanced_classes(np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.9, 0.1]])).tolist()
    [0, 1, 1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    count, classes = rows.shape
    if shares is None:
        frequencies: Array = np.full(classes, 1 / classes)
    else:
        frequencies = check_shares(shares, classes)
    places = np.repeat(np.arange(classes), np.ceil(count * frequencies - 1e-9).astype(int))
    likelihood = np.log(rows + LEAST_LIKELY)
    images, taken = linear_sum_assignment(likelihood[:, places], maximize=True)
    assigned = np.empty(count, np.int64)
    assigned[images] = places[taken]
    return assigned


def check_rows(probabilities: Array) -> Array:
    """The probabilities as float64 rows that sum to 1, or a ValueError that names the remedy."""
    rows: Array = np.array(probabilities, np.float64)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] < 2:
        raise ValueError(
            f"probabilities have shape {rows.shape}; give one row per image and one column per "
            "class, with at least 2 classes."
        )
    if not (np.isfinite(rows).all() and rows.min() >= 0 and rows.sum(axis=1).min() > 0):
        raise ValueError(
            "probabilities must be finite and not negative, and no row may be all zero; check the "
            "responses of the model."
        )
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


def check_shares(shares: Array, classes: int) -> Array:
    """The shares as float64 that sum to 1, or a ValueError that names the remedy."""
    exact: Array = np.array(shares, np.float64)
    if exact.shape != (classes,) or not exact.min() >= 0 or not 0 < exact.sum() < math.inf:
        raise ValueError(
            f"shares have shape {exact.shape}; give one number of 0 or more for each of {classes} "
            "classes."
        )
    exact /= exact.sum()
    return exact

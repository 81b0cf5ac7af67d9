"""How many predictions are correct, without labels: only as far as that can be known.

From the responses to the images alone there is no estimate. How far a confidence can be trusted
differs too much between models: one rule for all of them was 40 points too low for random forests
and too high for some networks (docs/research/estimates.md). What can be given is an upper bound,
from how often each class is predicted.

Clean images and the accuracy that is known for them say how far to trust this model. A temperature
makes its mean confidence on them equal to that accuracy. Every image is then assigned a class such
that all classes are as frequent as they should be and the whole is as likely as possible. A
prediction that is the assigned class counts with its confidence at that temperature, any other
prediction counts nothing, and the sum is scaled to be correct for the clean images.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.judging.balanced import (
    balanced_agreement,
    balanced_classes,
    check_rows,
    check_shares,
    classes_alone,
    equal_shares,
    favourable_shares,
    fitted_temperature,
    largest_accuracy,
)
from soda_tta.types import Array
from soda_tta.wording import counted

MOST_ROWS = 500  # of either set; the time of the assignment grows with the cube of their number
NORMAL_95 = 1.645  # nine tenths of a normal distribution lie within this many deviations
SAYS_NOTHING = 0.95  # a higher bound is not worth a sentence

# Where estimates were tested (benchmarks/estimate_coverage.py). Outside there are none.
CLASSES = (5, 1000)  # fewest and most; with two, 88 of 100 intervals held
FEWEST_IMAGES = 100  # of the images, and of the clean ones
MOST_SCALED = 1.3  # a larger factor means that the clean images do not fit the assumptions either


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """A way to estimate accuracy, with its errors on the benchmark.

    Parameters
    ----------
    method : str
        Its name.
    error : float
        Mean absolute error for boxes and shifts that did not calibrate it, as a share of 1.
    margin : float
        So large that it covered nineteen of twenty calibration cases, as a share of 1.
    """

    method: str
    error: float
    margin: float


# The errors are those in results/estimate_coverage.json; a test compares them.
CALIBRATED = Estimator(
    method="balanced agreement, calibrated on clean images", error=0.041, margin=0.126
)
BOUND = "balance of the classes"
REMEDY = (
    "Clean images with a known accuracy allow an estimate, labels of some images a measurement."
)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate of accuracy without labels. All numbers are shares of 1.

    Parameters
    ----------
    accuracy : float
        The estimate, or the upper bound.
    low, high : float
        An interval that contained the truth at least nine times out of ten on the benchmark.
    method : str
        Name of the estimator.
    sentence : str
        What was estimated, how far to trust it and when it fails.
    error : float or None
        Mean absolute error of the method on the benchmark; None for a bound.
    bound : bool, default False
        `accuracy` is only an upper bound, valid if the classes are as frequent as assumed.
    """

    accuracy: float
    low: float
    high: float
    method: str
    sentence: str
    error: float | None
    bound: bool = False

    @property
    def short(self) -> str:
        """The numbers in a few words."""
        if self.bound:
            return f"at most {self.high:.0%}"
        return f"{self.accuracy:.0%} ({self.low:.0%} to {self.high:.0%})"

    def facts(self) -> dict[str, Any]:
        """All fields, as plain JSON."""
        return asdict(self)


@dataclass(frozen=True)
class NoEstimate:
    """There is not enough to estimate the accuracy.

    Parameters
    ----------
    reason : str
        Why, as part of a sentence.
    """

    reason: str

    @property
    def sentence(self) -> str:
        """Why, and what would be enough."""
        return f"Not enough to estimate the accuracy: {self.reason}. {REMEDY}"


def estimate_accuracy(
    probabilities: Array,
    *,
    shares: Array | None = None,
    clean: Array | None = None,
    clean_accuracy: float | None = None,
    seed: int = 0,
) -> Estimate | NoEstimate:
    """Estimate the share of correct predictions from probabilities, as far as they allow it.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
        Responses of the model, one row per image.
    shares : array of shape (classes,), optional
        How frequent each class is. By default all classes are equally frequent.
    clean : array of shape (m, classes), optional
        Responses to images that are not shifted, of classes as frequent as among the images.
    clean_accuracy : float in (0, 1], optional
        The known accuracy on such images. Without `clean` and `clean_accuracy` there is no more
        than an upper bound.
    seed : int, default 0
        Chooses the rows if there are more than 1,000.

    Returns
    -------
    Estimate or NoEstimate
        An estimate with its interval; or an upper bound, if it says anything; or the reason why
        there is neither.

    Examples
    --------
    Two of ten classes are predicted for all images, so most predictions must be wrong:

    >>> rows = np.eye(10)[np.arange(500) % 2] * 0.8 + 0.02
    >>> estimate = estimate_accuracy(rows)
    >>> estimate.bound, round(estimate.accuracy, 2)
    (True, 0.41)
    """
    rows = check_rows(probabilities)
    classes = rows.shape[1]
    frequencies = equal_shares(classes) if shares is None else check_shares(shares, classes)
    reason = "nothing tells how far to trust the confidence of this model"
    predicted = rows.argmax(axis=1)
    allowed = favourable_shares(predicted, classes) if shares is None else frequencies
    high = largest_accuracy(predicted, allowed)
    if clean is not None and clean_accuracy is not None:
        check_clean_accuracy(clean_accuracy)
        clean_rows = check_rows(clean)
        reason = outside(rows, clean_rows, clean_accuracy, frequencies)
        if not reason:
            # With few images per class fewer predictions collide: as many of both are compared.
            used = min(len(rows), len(clean_rows), MOST_ROWS)
            accuracy = calibrated(
                sampled(rows, used, seed), sampled(clean_rows, used, seed), clean_accuracy, shares
            )
            if accuracy is not None:
                return _with_interval(accuracy, high, used, shares=shares)
            reason = "the confidence of this model on the clean images does not fit its accuracy"
    if high >= SAYS_NOTHING:
        return NoEstimate(reason)
    return Estimate(
        accuracy=high,
        low=0.0,
        high=high,
        method=BOUND,
        sentence=f"At most {high:.0%} of the predictions can be correct if {assumed(shares)}: "
        f"some classes are predicted too often. How many are correct is not known: {reason}. "
        f"{REMEDY}",
        error=None,
        bound=True,
    )


def outside(rows: Array, clean: Array, clean_accuracy: float, shares: Array) -> str:
    """Why an estimate would be outside of what was tested; empty if it is not."""
    classes = rows.shape[1]
    if clean.shape[1] != classes:
        raise ValueError(
            f"clean has {clean.shape[1]} classes, probabilities have {classes}; they must match."
        )
    if not CLASSES[0] <= classes <= CLASSES[1]:
        return f"estimates were tested with {CLASSES[0]} to {CLASSES[1]} classes, not {classes:,}"
    for name, count in (("image", len(rows)), ("clean image", len(clean))):
        if count < FEWEST_IMAGES:
            return f"{counted(count, name)} are too few; {FEWEST_IMAGES} are enough"
    if classes_alone(rows) or classes_alone(clean):
        return "nearly all probabilities are exactly 1, and say no more than the class"
    if largest_accuracy(clean.argmax(axis=1), shares) < clean_accuracy:
        return "the clean images do not show all classes as often as assumed"
    return ""


def calibrated(
    rows: Array, clean: Array, clean_accuracy: float, shares: Array | None = None
) -> float | None:
    """Balanced agreement at the temperature of the clean images, scaled to be correct for them.

    None if the clean images do not fit the assumptions.
    """
    temperature = fitted_temperature(clean, clean_accuracy)
    on_clean = balanced_agreement(clean, balanced_classes(clean, shares), temperature)
    if on_clean * MOST_SCALED < clean_accuracy:
        return None
    agreement = balanced_agreement(rows, balanced_classes(rows, shares), temperature)
    return min(1.0, agreement * clean_accuracy / on_clean)


def sampled(rows: Array, count: int, seed: int) -> Array:
    """So many of the rows, in their order."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:count])
    return rows[chosen]


def half_width(accuracy: float, images: int) -> float:
    """Half of the interval: the method's own margin and the sampling error of both sets."""
    deviation = math.sqrt(2 * accuracy * (1 - accuracy) / images)
    return math.hypot(CALIBRATED.margin, NORMAL_95 * deviation)


def _with_interval(accuracy: float, bound: float, images: int, *, shares: Array | None) -> Estimate:
    """An accuracy with its interval, which ends at the upper bound, and its sentence."""
    margin = half_width(accuracy, images)
    accuracy = min(accuracy, bound)
    low = max(0.0, accuracy - margin)
    high = min(1.0, accuracy + margin, bound)
    frequencies = "that all classes are equally frequent"
    if shares is not None:
        frequencies = "that the classes are as frequent as specified"
    sentence = (
        f"About {accuracy:.0%} of the predictions are correct ({low:.0%} to {high:.0%}), estimated "
        f"without labels by {CALIBRATED.method}: in tests it was off by "
        f"{100 * CALIBRATED.error:.1f} points on average. It assumes {frequencies} and "
        "fails where they are not, or where images show none of the classes."
    )
    return Estimate(
        accuracy=accuracy,
        low=low,
        high=high,
        method=CALIBRATED.method,
        sentence=sentence,
        error=CALIBRATED.error,
    )


def assumed(shares: Array | None) -> str:
    """What a bound assumes about the classes."""
    if shares is None:
        return "no class is more than twice as frequent as another among these images"
    return "the classes are as frequent as specified"


def check_clean_accuracy(clean_accuracy: float) -> None:
    """Refuse what is not a share."""
    if not 0 < clean_accuracy <= 1:
        raise ValueError(
            f"clean_accuracy={clean_accuracy:g} is not a share; give more than 0 and at most 1."
        )

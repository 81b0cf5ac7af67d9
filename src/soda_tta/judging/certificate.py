"""What a few labelled images say about a gain: an interval, not a point.

Labels are used here to measure. They never reach the search.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Accuracy before and after on the labelled images, and an interval for the gain on all images.

    Parameters
    ----------
    images : int
        Number of labelled images.
    before, after : float
        Accuracy on them, as shares of 1.
    low, high : float
        Bounds of the interval for the gain, as shares of 1.
    level : float
        How often such an interval contains the true gain, as a share of 1.
    """

    images: int
    before: float
    after: float
    low: float
    high: float
    level: float

    @property
    def gain(self) -> float:
        """Accuracy after minus accuracy before, as a share of 1."""
        return self.after - self.before

    @property
    def sentence(self) -> str:
        """The certificate in one sentence."""
        conclusion = "which may be chance"
        if self.low > 0:
            conclusion = "a significant gain"
        elif self.high < 0:
            conclusion = "a significant loss"
        interval = f"{100 * self.low:+.0f} to {100 * self.high:+.0f}"
        return (
            f"On {self.images} labelled images, accuracy went from {self.before:.0%} to "
            f"{self.after:.0%}: {100 * self.gain:+.0f} points "
            f"({self.level:.0%} interval {interval}), {conclusion}."
        )

    def facts(self) -> dict[str, Any]:
        """All fields and the gain, as plain JSON."""
        return {**asdict(self), "gain": self.gain}


def certify(before: Array, after: Array, labels: Array, level: float = 0.95) -> Certificate:
    """Compare two sets of probabilities for the same labelled images.

    Parameters
    ----------
    before, after : arrays of shape (n, classes)
        Probabilities without and with adaptation.
    labels : integer array of shape (n,)
        The true classes.
    level : float in (0, 1), default 0.95
        How often the interval shall contain the true gain.

    Examples
    --------
    >>> labels = np.array([0] * 10 + [1] * 10)
    >>> always_first = np.eye(2)[[0] * 20]
    >>> print(certify(always_first, np.eye(2)[labels], labels).sentence)
    On 20 labelled images, accuracy went from 50% to 100%: +50 points (95% interval +21 to +70), \
a significant gain.
    """
    correct_before = before.argmax(axis=1) == labels
    correct_after = after.argmax(axis=1) == labels
    low, high = paired_interval(correct_before, correct_after, level)
    return Certificate(
        images=len(labels),
        before=float(correct_before.mean()),
        after=float(correct_after.mean()),
        low=low,
        high=high,
        level=level,
    )


def paired_interval(
    correct_before: Array, correct_after: Array, level: float = 0.95
) -> tuple[float, float]:
    """The interval for the gain on all images, from some images with known labels.

    This is the interval of Bonett and Price for paired proportions. It keeps its level with twenty
    images, where the textbook formula does not.

    Parameters
    ----------
    correct_before, correct_after : boolean arrays of shape (n,)
        Which predictions are correct without and with adaptation.
    level : float in (0, 1), default 0.95
        How often the interval shall contain the true gain.

    Returns
    -------
    (low, high) : shares of 1

    Examples
    --------
    >>> low, high = paired_interval(np.array([True, False] * 20), np.array([True] * 40))
    >>> round(low, 2), round(high, 2)
    (0.31, 0.64)
    """
    from scipy import stats  # slow to import, and a stored certificate does not need it

    count = len(correct_before)
    gained = ((correct_after & ~correct_before).sum() + 1) / (count + 2)
    lost = ((correct_before & ~correct_after).sum() + 1) / (count + 2)
    middle = gained - lost
    reach = stats.norm.ppf((1 + level) / 2) * np.sqrt((gained + lost - middle**2) / (count + 2))
    return float(max(-1.0, middle - reach)), float(min(1.0, middle + reach))

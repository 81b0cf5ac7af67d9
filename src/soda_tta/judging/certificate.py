"""What a handful of labelled images say about a gain: an interval, not a point. Labels never reach the search."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Accuracy before and after on the labelled images, and an interval for the gain on all; shares of 1."""

    images: int
    before: float
    after: float
    low: float
    high: float
    level: float  # how often such intervals hold the true gain

    @property
    def gain(self) -> float:
        return self.after - self.before

    @property
    def sentence(self) -> str:
        sure = (
            "a sure gain"
            if self.low > 0
            else "a sure loss"
            if self.high < 0
            else "which may be chance"
        )
        return (
            f"On {self.images} labelled images accuracy went from {self.before:.0%} to {self.after:.0%}: "
            f"{100 * self.gain:+.0f} points "
            f"({self.level:.0%} interval {100 * self.low:+.0f} to {100 * self.high:+.0f}), {sure}."
        )

    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "gain": self.gain}


def certify(before: Array, after: Array, labels: Array, level: float = 0.95) -> Certificate:
    """Compare two sets of answers (rows of probabilities) to the same labelled images.

    >>> answers, labels = np.eye(2)[[0] * 20], np.array([0] * 10 + [1] * 10)
    >>> certify(answers, np.eye(2)[labels], labels).sentence
    'On 20 labelled images accuracy went from 50% to 100%: +50 points (95% interval +21 to +70), a sure gain.'
    """
    was, now = before.argmax(axis=1) == labels, after.argmax(axis=1) == labels
    low, high = paired_interval(was, now, level)
    right = float(was.mean()), float(now.mean())
    return Certificate(
        images=len(labels), before=right[0], after=right[1], low=low, high=high, level=level
    )


def paired_interval(was: Array, now: Array, level: float = 0.95) -> tuple[float, float]:
    """For the gain on all images, from which of some were answered rightly before and after.

    Bonett and Price's for paired proportions: it keeps its level with twenty images, where the textbook formula does
    not.
    """
    from scipy import stats  # slow to load, and a saved verdict does not need it

    count = len(was)
    gained, lost = ((now & ~was).sum() + 1) / (count + 2), ((was & ~now).sum() + 1) / (count + 2)
    middle = gained - lost
    reach = stats.norm.ppf((1 + level) / 2) * np.sqrt((gained + lost - middle**2) / (count + 2))
    return float(max(-1.0, middle - reach)), float(min(1.0, middle + reach))

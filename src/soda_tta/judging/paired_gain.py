"""What one image says about two adaptors, from the responses to two views of it through each.

The measure is `objectives/agreement.py: matching_information_of_each` at equal confidence: how much
better the two views of an image match than views of other images. Being more confident does not
raise it, nor does answering always the same class. What it needs to know of other images comes from
earlier images only, so that a sequential test may bet on it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from soda_tta.judging.measures import Views
from soda_tta.objectives.agreement import MATCH_EPSILON
from soda_tta.objectives.equations import entropy
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

CALIBRATING = 16  # images that only calibrate: what an average image looks like
REMEMBERED = 128  # latest images that calibrate
CALIBRATED_EVERY = 8  # images
MOST = 1.0  # nats: the gain of one image is clipped to this, so that no image decides alone
LEAST_GAIN = 0.005  # nats: a smaller mean gain is none; temperatures are only estimates
TINY = 1e-12  # a zero of a model that rounds its responses is not impossible


class Gain(NamedTuple):
    """What one image says."""

    matching: float  # in [-1, 1]: how much better its views match, clipped, minus the least gain
    agreement: float  # how much more often its views agree


class PairedGain:
    """Gains of a challenger over a champion, image by image, at equal confidence.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> gain = PairedGain()
    >>> for label in random.integers(3, size=40):
    ...     right = np.full((2, 3), 0.05) + 0.85 * np.eye(3)[label]
    ...     guess = np.full((2, 3), 0.05) + 0.85 * np.eye(3)[random.integers(3, size=2)]
    ...     last = gain.add(champion=guess, challenger=right)
    >>> last.matching > 0
    True
    """

    def __init__(self) -> None:
        self.champion: deque[Array] = deque(maxlen=REMEMBERED)  # (2 views, classes) per image
        self.challenger: deque[Array] = deque(maxlen=REMEMBERED)
        self.count = 0
        self.exponent = 1.0  # tempers the challenger to the confidence of the champion
        self.means: Array | None = None  # (2 adaptors, 2 views, classes): an average image

    def add(self, champion: Array, challenger: Array) -> Gain | None:
        """The gain of one image; None while the first ones calibrate.

        Parameters
        ----------
        champion, challenger : arrays of shape (2, classes)
            Responses to the image and to the image shifted, through each adaptor.
        """
        gain = None if self.count < CALIBRATING else self._gain(champion, challenger)
        self.champion.append(np.asarray(champion, np.float32))
        self.challenger.append(np.asarray(challenger, np.float32))
        self.count += 1
        if self.count >= CALIBRATING and self.count % CALIBRATED_EVERY == 0:
            self._calibrate()
        return gain

    def _gain(self, champion: Array, challenger: Array) -> Gain:
        assert self.means is not None
        before = np.asarray(champion, np.float64)
        after = self._tempered(challenger)
        gain = matching(after, self.means[1]) - matching(before, self.means[0])
        scaled = float(np.clip(gain, -MOST, MOST) - LEAST_GAIN) / (MOST + LEAST_GAIN)
        return Gain(scaled, float(after[0] @ after[1] - before[0] @ before[1]))

    def _tempered(self, rows: Array) -> Array:
        exact = np.asarray(rows, np.float64) + TINY
        return np.asarray(tempered(exact, self.exponent))

    def _calibrate(self) -> None:
        champion = self._views(self.champion)
        challenger = self._views(self.challenger)
        self.exponent = exponent_between(challenger, champion)
        equal = [self._tempered(rows) for rows in challenger]
        self.means = np.array(
            [[rows.mean(axis=0) for rows in views] for views in (champion, equal)]
        )

    @staticmethod
    def _views(rows: deque[Array]) -> Views:
        stacked = np.array(rows, np.float64)
        return stacked[:, 0], stacked[:, 1]

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        arrays = {
            "champion": np.array(self.champion, np.float32),
            "challenger": np.array(self.challenger, np.float32),
            "counts": np.array([self.count, self.exponent]),
        }
        return arrays if self.means is None else {**arrays, "means": self.means}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self.champion = deque(state["champion"], maxlen=REMEMBERED)
        self.challenger = deque(state["challenger"], maxlen=REMEMBERED)
        count, self.exponent = state["counts"].tolist()
        self.count = int(count)
        self.means = state.get("means")


def matching(rows: Array, means: Array) -> float:
    """How much better two views match each other than they match an average image, in nats."""
    own = np.log(rows[0] @ rows[1] + MATCH_EPSILON)
    by_chance = np.log(rows[0] @ means[1] + MATCH_EPSILON) + np.log(
        rows[1] @ means[0] + MATCH_EPSILON
    )
    return float(own - by_chance / 2)


def exponent_between(views: Views, others: Views) -> float:
    """The exponent that gives views the mean entropy of others."""
    goal = np.mean([entropy(rows).mean() for rows in others])
    low = -3.0  # logarithms
    high = 3.0
    for _ in range(20):
        middle = (low + high) / 2
        equal = [tempered(rows + TINY, np.exp(middle)) for rows in views]
        if np.mean([entropy(rows).mean() for rows in equal]) > goal:
            low = middle
        else:
            high = middle
    return float(np.exp((low + high) / 2))

"""A test that may be looked at after every image: bets on bounded gains (e-values).

A gambler starts with a capital of 1 and bets on each gain before it is known. If gains are not
positive on average, given everything before them, the capital exceeds `1 / level` at any time in
its whole life with probability at most `level` (Ville's inequality). So the capital may be looked
at after every image. Ramdas and Waudby-Smith, "Estimating means of bounded random variables by
betting" (2024); Shin, Ramdas and Rinaldo, "E-detectors" (2024).
"""

from __future__ import annotations

import math

import numpy as np

from soda_tta.types import Array

# Shares of the capital that are bet. The best share is about the mean gain divided by its variance,
# which is not known: the capital is divided evenly among these, and no tuning is needed.
BETS = np.array([0.05, 0.1, 0.2, 0.4, 0.8])


def level_of(number: int, level: float) -> float:
    """The share of an error rate that the candidate with this number may spend.

    All candidates together, however many will come, spend at most `level`.

    Parameters
    ----------
    number : int
        1 for the first candidate of the whole life.
    level : float
        Accepted rate of false promotions over the whole life.

    Examples
    --------
    >>> sum(level_of(number, 0.01) for number in range(1, 10_000)) < 0.01
    True
    """
    return 6 * level / (math.pi * number) ** 2


class Capital:
    """The capital of a gambler who bets that gains are positive.

    Parameters
    ----------
    restarting : bool, default False
        Never fall below 1. Then what was lost in good times need not be won back, and a change is
        noticed soon. The error rate becomes one per time: without a change, a capital of `c` is
        reached after at least `c` gains on average (a CUSUM e-detector).

    Examples
    --------
    >>> capital = Capital()
    >>> for _ in range(40):
    ...     capital.add(0.5)
    >>> capital.value > 1000
    True
    """

    def __init__(self, *, restarting: bool = False) -> None:
        self.restarting = restarting
        self.logarithms = np.zeros(len(BETS))
        self.best = 0.0  # largest logarithm of the capital so far
        self.count = 0

    def add(self, gain: float) -> None:
        """Bet on one gain, a number in [-1, 1]."""
        if not -1 <= gain <= 1:
            raise ValueError(f"a gain of {gain} is not valid; clip it to [-1, 1].")
        if self.restarting:
            self.logarithms = np.maximum(self.logarithms, 0)
        self.logarithms = self.logarithms + np.log1p(BETS * gain)
        self.best = max(self.best, self.logarithm)
        self.count += 1

    @property
    def logarithm(self) -> float:
        """The logarithm of the capital, which is the mean over all bets."""
        largest = self.logarithms.max()
        return float(largest + np.log(np.exp(self.logarithms - largest).mean()))

    @property
    def value(self) -> float:
        """The capital, at most 1e300."""
        return math.exp(min(self.logarithm, 690.0))

    @property
    def p_value(self) -> float:
        """An upper bound of the chance of such a result without a gain, valid at any time."""
        return math.exp(-min(self.best, 690.0))

    def reaches(self, level: float) -> bool:
        """Whether the capital has ever been `1 / level`."""
        return self.best >= -math.log(level)

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        return {"logarithms": self.logarithms, "counts": np.array([self.best, self.count])}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self.logarithms = state["logarithms"]
        best, count = state["counts"].tolist()
        self.best = best
        self.count = int(count)

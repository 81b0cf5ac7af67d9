"""Greedy pursuit: try a short list of moves, take the one that helps most beyond doubt, try again from there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Pursuit:
    """After a first round of all moves, each round tries the `tried` best ones so far and sums of the best three.

    A move is taken only if its gain exceeds `caution` standard errors, seen image by image. That keeps most harm out,
    not all: of thirty moves that do nothing one may look like a gain, which is why a verdict follows. A round
    without a move shortens the moves; `patience` of them end the search.
    """

    tried: int = 8
    caution: float = 1.0
    shorten: float = 0.6
    patience: int = 3

    def __post_init__(self) -> None:
        if not (
            self.tried >= 3 and self.caution >= 0 and 0 < self.shorten < 1 and self.patience >= 1
        ):
            raise MethodError(
                "pursuit tries at least 3 moves, with caution >= 0, 0 < shorten < 1 and patience >= 1."
            )

    def candidates(self, moves: int) -> tuple[int, int]:
        """Queries an image: in the first round, and in each of the others."""
        return 1 + moves, 1 + self.tried + 4

    def start(self, theta: Array, moves: Array) -> PursuitSearch:
        return PursuitSearch(self, theta, moves)


class PursuitSearch:
    """`ask()` for points, `tell()` their losses image by image; `done` when nothing helps any more.

    >>> search = Pursuit().start(np.zeros(4), np.concatenate([np.eye(4), -np.eye(4)]))
    >>> goal = np.array([2.0, -1.0, 0.0, 0.0])
    >>> while not search.done: search.tell([[((point - goal) ** 2).sum()] * 9 for point in search.ask()])
    >>> search.theta
    array([ 2., -1.,  0.,  0.])
    """

    def __init__(self, settings: Pursuit, theta: Array, moves: Array) -> None:
        self.settings, self.moves = settings, np.asarray(moves, np.float64)
        self.theta = np.array(theta, np.float64)
        self.gains = np.full(len(moves), np.inf)  # of each move when last tried
        self.length, self.failures, self.rounds = 1.0, 0, 0
        self.steps = np.zeros((0, self.theta.size))

    @property
    def done(self) -> bool:
        return self.failures >= self.settings.patience

    def ask(self) -> Array:
        """The current point, then one point a step tried."""
        self.order = np.argsort(-self.gains, kind="stable")[
            : None if not self.rounds else self.settings.tried
        ]
        singles = self.length * self.moves[self.order]
        first, second, third = singles[:3]
        sums = (
            [first + second, first + third, second + third, first + second + third]
            if self.rounds
            else []
        )
        self.steps = np.array([*singles, *sums])
        return np.concatenate([self.theta[None], self.theta + self.steps])

    def tell(self, losses: Array) -> None:
        """Losses of the points last asked for, (points, images); the mean over the images is what counts."""
        losses = np.asarray(losses, np.float64)
        if losses.shape[:1] != (1 + len(self.steps),):
            raise ValueError(f"{losses.shape} losses for {1 + len(self.steps)} points.")
        gain = losses[0] - losses[1:]
        sure = gain.mean(1) - self.settings.caution * gain.std(1) / np.sqrt(gain.shape[1])
        self.gains[self.order] = gain.mean(1)[: len(self.order)]
        best = int(sure.argmax())
        if sure[best] > 0:
            self.theta = self.theta + self.steps[best]
            self.failures = 0
        else:
            self.length *= self.settings.shorten
            self.failures += 1
        # what did harm long ago may help by now: it slowly comes back among those tried
        rested = np.setdiff1d(np.arange(len(self.moves)), self.order)
        self.gains[rested] *= np.where(self.gains[rested] < 0, 0.7, 1.0)
        self.rounds += 1

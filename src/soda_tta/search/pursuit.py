"""Greedy pursuit: try a short list of moves, take the best one, and try again from there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.search.race import queries_of
from soda_tta.settings import setting
from soda_tta.types import Array

STARTING_HEATS = 3  # of the round on the starts, which differ much more than moves do


@dataclass(frozen=True, kw_only=True)
class Pursuit:
    """After a round of all moves, each round tries the best ones so far and some sums.

    A move is taken only if its gain exceeds `caution` standard errors, measured image by image.
    That keeps most harm out, not all: of thirty moves that do nothing, one may look like a gain.
    This is why a verdict follows. A round without a move shortens the moves; `patience` of them
    end the search.
    """

    tried: int = setting(8, "moves tried per round; sums of the best three come on top")
    caution: float = setting(1.0, "standard errors by which a move must gain to be taken")
    shorten: float = setting(0.6, "factor of the moves' length after a round without a move")
    patience: int = setting(3, "consecutive rounds without a move that end the search")
    heats: int = setting(1, "heats of a round; after each, the better half goes on")

    def __post_init__(self) -> None:
        plausible = 0 < self.shorten < 1 and self.patience >= 1
        if not (self.tried >= 3 and self.caution >= 0 and plausible and 1 <= self.heats <= 5):
            raise MethodError(
                "pursuit needs tried >= 3, caution >= 0, 0 < shorten < 1, patience >= 1 "
                "and 1 <= heats <= 5."
            )

    def candidates(self, moves: int) -> tuple[int, int]:
        """Points of the round of all moves, and of each of the others."""
        return 1 + moves, 1 + self.tried + 4

    def queries(self, images: int, moves: int, rounds: int, starts: int = 0) -> int:
        """What so many rounds of moves on so many images each cost, and the one on the starts."""
        first, later = self.candidates(moves)
        cost = queries_of(first, images, self.heats)
        cost += (rounds - 1) * queries_of(later, images, self.heats)
        if starts:
            cost += queries_of(1 + starts, images, STARTING_HEATS)
        return cost

    def start(self, theta: Array, moves: Array, starts: Array | None = None) -> PursuitSearch:
        """Begin at `theta`, or at the best of `starts`, with these moves, one per row."""
        return PursuitSearch(self, theta, moves, starts)


class PursuitSearch:
    """`ask()` for points, `tell()` their losses image by image; `done` when nothing helps any more.

    If there are starts, a round on them comes first: the best one is taken, if it gains.

    Examples
    --------
    >>> search = Pursuit().start(np.zeros(4), np.concatenate([np.eye(4), -np.eye(4)]))
    >>> goal = np.array([2.0, -1.0, 0.0, 0.0])
    >>> while not search.done:
    ...     search.tell([[((point - goal) ** 2).sum()] * 9 for point in search.ask()])
    >>> search.theta
    array([ 2., -1.,  0.,  0.])
    """

    def __init__(
        self, settings: Pursuit, theta: Array, moves: Array, starts: Array | None = None
    ) -> None:
        self.settings = settings
        self.moves = np.asarray(moves, np.float64)
        self.theta = np.array(theta, np.float64)
        self.starts = np.empty((0, len(self.theta))) if starts is None else np.asarray(starts)
        self.gains = np.full(len(moves), np.inf)  # of each move when it was last tried
        self.length = 1.0  # factor of the moves
        self.failures = 0  # consecutive rounds without a move
        self.rounds = 0

    @property
    def done(self) -> bool:
        """Whether the search has ended."""
        return self.failures >= self.settings.patience

    @property
    def choosing(self) -> bool:
        """Whether this is the round on the starts."""
        return len(self.starts) > 0 and self.rounds == 0

    @property
    def heats(self) -> int:
        """Heats of this round."""
        return STARTING_HEATS if self.choosing else self.settings.heats

    @property
    def _surveyed(self) -> bool:
        """Whether every move was tried once."""
        return self.rounds > (len(self.starts) > 0)

    def _order(self) -> Array:
        """The moves of this round, the most promising first."""
        order = np.argsort(-self.gains, kind="stable")
        return order[: self.settings.tried] if self._surveyed else order

    def _steps(self) -> Array:
        if self.choosing:
            return self.starts - self.theta
        singles = self.length * self.moves[self._order()]
        if not self._surveyed:
            return singles
        first, second, third = singles[:3]
        sums = [first + second, first + third, second + third, first + second + third]
        return np.array([*singles, *sums])

    def ask(self) -> Array:
        """The current point, then one point per step tried; the same until losses are told."""
        return np.concatenate([self.theta[None], self.theta + self._steps()])

    def tell(self, losses: Array) -> None:
        """Losses of the points, as (points, images); the mean over the images is what counts."""
        losses = np.asarray(losses, np.float64)
        steps = self._steps()
        if losses.shape[:1] != (1 + len(steps),):
            raise ValueError(f"{losses.shape} losses for {1 + len(steps)} points.")
        gain = losses[0] - losses[1:]
        self.tell_gains(gain.mean(1), gain.std(1) / np.sqrt(gain.shape[1]))

    def tell_gains(self, gains: Array, errors: Array) -> None:
        """The mean gain of each step over the current point, and its standard error.

        An infinite error means that the step was given up early: it is not taken.
        """
        finished = np.isfinite(errors)
        margin = self.settings.caution * np.where(finished, errors, 0)
        cautious_gain = np.where(finished, gains - margin, -np.inf)
        best = int(cautious_gain.argmax())
        step = self._steps()[best] if cautious_gain[best] > 0 else None
        if not self.choosing:
            self._learn(gains, taken=step is not None)
        if step is not None:
            self.theta = self.theta + step
        self.rounds += 1

    def _learn(self, gains: Array, taken: bool) -> None:
        """Note what the moves of this round gained, and whether one of them is taken."""
        order = self._order()
        self.gains[order] = gains[: len(order)]
        if taken:
            self.failures = 0
        else:
            self.length *= self.settings.shorten
            self.failures += 1
        # What did harm long ago may help by now: it slowly returns to the moves that are tried.
        rested = np.setdiff1d(np.arange(len(self.moves)), order)
        self.gains[rested] *= np.where(self.gains[rested] < 0, 0.7, 1.0)

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        counts = np.array([self.length, self.failures, self.rounds], np.float64)
        return {"theta": self.theta, "gains": self.gains.copy(), "counts": counts}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self.theta = state["theta"]
        self.gains = np.array(state["gains"])
        length, failures, rounds = state["counts"].tolist()
        self.length = length
        self.failures = int(failures)
        self.rounds = int(rounds)

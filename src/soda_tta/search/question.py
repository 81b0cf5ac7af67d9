"""What a search asks, and what it reports when a round is complete."""

from __future__ import annotations

from typing import NamedTuple

from soda_tta.types import Array


class Question(NamedTuple):
    """What the search wants to know: every point of `thetas` on every one of `images`."""

    thetas: Array  # (points, parameters)
    images: Array  # places among the images of the search

    @property
    def queries(self) -> int:
        """What the question costs."""
        return len(self.thetas) * len(self.images)


class Round(NamedTuple):
    """A completed round: what those who follow the search want to see."""

    length: float  # of the moves, or the deviation of evolution
    losses: tuple[float, ...]  # of every candidate; in pursuit, the current point first
    queries: int  # since the previous round

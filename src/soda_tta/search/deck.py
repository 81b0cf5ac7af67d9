"""Which images each round of a search uses."""

from __future__ import annotations

import numpy as np

from soda_tta.randomness import RandomStream, generator
from soda_tta.types import Array


class Deck:
    """Deals the images of each round from a shuffled deck.

    A remainder smaller than a batch is shuffled in again.
    """

    def __init__(self, count: int, batch: int, seed: int) -> None:
        self.count = count
        self.batch = batch
        self.seed = seed
        self._begin()

    def _begin(self) -> None:
        self.random = generator(self.seed, RandomStream.ROUNDS)
        self.waiting: list[int] = []
        self.rounds = 0

    def deal(self) -> Array:
        """The images of the next round."""
        if len(self.waiting) < self.batch:
            self.waiting = list(self.random.permutation(self.count))
        size = min(self.batch, len(self.waiting))
        self.rounds += 1
        return np.sort(np.array([self.waiting.pop() for _ in range(size)]))

    def restore(self, rounds: int) -> None:
        """Continue after so many rounds."""
        self._begin()
        for _ in range(rounds):
            self.deal()

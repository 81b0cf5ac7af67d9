"""One round of pursuit in heats: all points on a few images, then the better half on more."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array

FEWEST = 12  # images of the first heat: with fewer, the better half is chosen by chance
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, are evenly spread at any time


def spread(images: Array) -> Array:
    """The images in an order of which every beginning is spread over all of them.

    A folder may be sorted by class, and a few images of one class say nothing.

    >>> spread(np.arange(8)).tolist()
    [0, 5, 2, 7, 4, 1, 6, 3]
    """
    return images[np.argsort(np.arange(len(images)) * GOLDEN % 1)]


def heats_of(images: int, heats: int) -> list[int]:
    """How many images each heat adds: each twice as many as the one before.

    There are fewer heats where the first would have fewer than `FEWEST` images.

    >>> heats_of(140, 3), heats_of(40, 3)
    ([20, 40, 80], [13, 27])
    """
    while heats > 1 and images < FEWEST * (2**heats - 1):
        heats -= 1
    shares = [(2**heat) / (2**heats - 1) for heat in range(heats)]
    ends = np.rint(np.cumsum(shares) * images).astype(int).tolist()
    starts = [0, *ends[:-1]]
    return [end - start for start, end in zip(starts, ends, strict=True)]


def queries_of(points: int, images: int, heats: int) -> int:
    """What a race of so many points costs, with the current point among them.

    >>> queries_of(9, 140, 1), queries_of(9, 140, 3)  # 20 x 8 + 40 x 4 + 80 x 2 and the current
    (1260, 620)
    """
    total = images
    rivals = points - 1
    for added in heats_of(images, heats):
        total += rivals * added
        rivals = half(rivals)
    return total


def half(rivals: int) -> int:
    """How many of the rivals go on."""
    return max(1, (rivals + 1) // 2)


class Race:
    """Which points meet on which images, until the round is complete.

    Parameters
    ----------
    images : integer array of shape (n,)
        Places of the images of the round, in the order in which they are used.
    points : int
        The current point, whose responses are known, and its rivals.
    classes : int
    heats : int
    """

    def __init__(self, images: Array, points: int, classes: int, heats: int) -> None:
        self.images = images
        self.sizes = heats_of(len(images), heats)
        self.rows = [np.empty((0, classes), np.float32) for _ in range(points - 1)]  # of rivals
        self.running = np.arange(points - 1)  # rivals that are still in the race
        self.heat = 0

    @property
    def done(self) -> bool:
        """Whether all heats are over."""
        return self.heat == len(self.sizes)

    @property
    def next_images(self) -> Array:
        """Places of the images of the next heat."""
        start = sum(self.sizes[: self.heat])
        return self.images[start : start + self.sizes[self.heat]]

    def tell(self, rows: Array) -> None:
        """Responses of the rivals that are still in the race to the images of the heat."""
        for rival, own in zip(self.running, rows, strict=True):
            self.rows[rival] = np.concatenate([self.rows[rival], own])
        self.heat += 1

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        lengths = [len(rows) for rows in self.rows]
        return {
            "lengths": np.array(lengths, np.int64),
            "rows": np.concatenate(self.rows),
            "running": self.running,
            "heat": np.array([self.heat], np.int64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        ends = np.cumsum(state["lengths"])[:-1]
        self.rows = np.split(state["rows"], ends)
        self.running = state["running"]
        self.heat = state["heat"].item()

    def drop(self, gains: Array) -> None:
        """Only the half of the rivals with the largest gains goes on."""
        if not self.done:
            best = np.argsort(-gains[self.running], kind="stable")[: half(len(self.running))]
            self.running = np.sort(self.running[best])

"""The images that a convention is found with, as each way of sending them needs them."""

from __future__ import annotations

import numpy as np

from soda_tta.box.view import View
from soda_tta.conventions.looks import tidied
from soda_tta.data import Images
from soda_tta.types import Array

MOST_FLOATS = 2**28  # 1 GB: fewer images, if they are large and the model takes any size
AT_ONCE = 8  # images that are decoded in their own size


class Sample:
    """Some images of a set, drawn at random, without their own noise and haze.

    Parameters
    ----------
    images : Images
        In their own size.
    count : int
        How many to draw, at most.
    seed : int
    view : View or None
        What of an image reaches the model; decides how many fit into memory.
    """

    def __init__(self, images: Images, count: int, seed: int, view: View | None) -> None:
        height, width = images.size if view is None else view.size
        fitting = max(1, MOST_FLOATS // (3 * height * width))
        drawn = np.random.default_rng(seed).permutation(len(images))
        self.images = images
        self.positions = drawn[: min(count, fitting)]
        self._seen: dict[View | None, Array] = {}

    def __len__(self) -> int:
        return len(self.positions)

    def seen(self, view: View | None) -> Array:
        """The images as one view shows them."""
        if view not in self._seen:
            starts = range(0, len(self), AT_ONCE)
            pieces = (self.images[self.positions[start : start + AT_ONCE]] for start in starts)
            shown = [tidied(piece if view is None else view(piece)) for piece in pieces]
            self._seen[view] = np.concatenate(shown)
        return self._seen[view]

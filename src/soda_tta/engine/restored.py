"""Images with their restored versions at hand, for a search over the restoration bank."""

from __future__ import annotations

import numpy as np

from soda_tta.adaptors import BankAdaptor
from soda_tta.adaptors.parts import MIXED
from soda_tta.box import Box
from soda_tta.data import Images
from soda_tta.types import Array

PREPARED_BYTES = 2**28  # of restored versions kept at once
ASKED_AT_ONCE = 256  # images per call of the box: enough for every worker of a server
ASKED_BYTES = 2**25  # of images per call: larger blocks of memory are not reused and cost time


class RestoredImages:
    """Some of the images, prepared so that many candidates can be mixed from them quickly.

    Parameters
    ----------
    adaptor : the bank.
    images : all images.
    free : places of the images that may be used; the first so many are.
    parts : which parts of the bank the search may use.
    batch : images per round: at least so many are used.
    most : images to use at most, if their restored versions fit in memory.
    """

    def __init__(
        self,
        adaptor: BankAdaptor,
        images: Images,
        free: Array,
        parts: Array,
        batch: int,
        most: int,
    ) -> None:
        self.adaptor = adaptor
        self.images = images
        height, width = images.size
        self.image_bytes = 4 * 3 * height * width
        versions = self.image_bytes * (1 + len(MIXED))
        count = max(batch, min(most, PREPARED_BYTES // versions))
        self.places = np.sort(free[:count])
        self.parts = tuple(bool(part) for part in parts[: len(MIXED)])
        self.prepared: Array | None = None
        if len(self.places) * versions <= PREPARED_BYTES:
            self.prepared = adaptor.prepare(images[self.places], self.parts)

    def answers(self, thetas: Array, chosen: Array, box: Box) -> Array:
        """The responses of the box to every candidate of every chosen image.

        Returns an array (candidates, images, classes).
        """
        if self.prepared is not None:
            everything = len(chosen) == len(self.places)
            prepared = self.prepared if everything else self.prepared[chosen]
            return self._mixed(prepared, thetas, box)
        # Large images are restored again for every question, as many as are sent together.
        size = max(1, ASKED_BYTES // self.image_bytes)
        parts = []
        for start in range(0, len(chosen), size):
            images = self.images[self.places[chosen[start : start + size]]]
            parts.append(self._mixed(self.adaptor.prepare(images, self.parts), thetas, box))
        return np.concatenate(parts, axis=1)

    def _mixed(self, prepared: Array, thetas: Array, box: Box) -> Array:
        """Some candidates at a time: a crash loses little, and memory stays small."""
        most = min(ASKED_AT_ONCE, ASKED_BYTES // self.image_bytes)
        size = max(1, most // max(1, len(prepared)))
        rows = []
        for start in range(0, len(thetas), size):
            adapted = self.adaptor.mix(prepared, thetas[start : start + size])
            rows.append(box(adapted.reshape(-1, *adapted.shape[2:])))
        return np.concatenate(rows).reshape(len(thetas), len(prepared), -1)

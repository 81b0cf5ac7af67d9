"""Images with their restored versions at hand, for a search over the restoration bank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
            everything = np.array_equal(chosen, np.arange(len(self.places)))
            prepared = self.prepared if everything else self.prepared[chosen]
            return answered(self._mixed(prepared, thetas), len(thetas), box)
        # Large images are restored again for every question, as many as are sent together.
        size = max(1, ASKED_BYTES // self.image_bytes)
        starts = range(0, len(chosen), size)
        prepared_parts = (self._prepared(chosen[start : start + size]) for start in starts)
        pieces = (piece for part in prepared_parts for piece in self._mixed(part, thetas))
        return answered(pieces, len(thetas), box)

    def _prepared(self, chosen: Array) -> Array:
        return self.adaptor.prepare(self.images[self.places[chosen]], self.parts)

    def _mixed(self, prepared: Array, thetas: Array) -> Iterator[Array]:
        """Images of some candidates at a time, so that memory stays small."""
        most = min(ASKED_AT_ONCE, ASKED_BYTES // self.image_bytes)
        size = max(1, most // max(1, len(prepared)))
        for start in range(0, len(thetas), size):
            yield self.adaptor.mix(prepared, thetas[start : start + size])


def answered(pieces: Iterable[Array], candidates: int, box: Box) -> Array:
    """The responses to pieces (candidates, images, ...), as an array (candidates, images, classes).

    The next piece is made while the box waits for the responses to the last.
    """
    shapes: list[tuple[int, int]] = []

    def flat() -> Iterator[Array]:
        for piece in pieces:
            shapes.append((piece.shape[0], piece.shape[1]))
            yield piece.reshape(-1, *piece.shape[2:])

    parts: list[Array] = []  # all candidates of some images each
    rows: list[Array] = []  # of the part under way
    for number, responses in enumerate(box.each(flat())):
        rows.append(responses.reshape(*shapes[number], -1))
        if sum(len(each) for each in rows) == candidates:
            parts.append(np.concatenate(rows))
            rows = []
    return np.concatenate(parts, axis=1)

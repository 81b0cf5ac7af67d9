"""Images with their restored versions at hand, for a search over the restoration bank."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from soda_tta.adaptors import BankAdaptor
from soda_tta.adaptors.parts import MIXED, PARTS, REPAIRS
from soda_tta.box import Box
from soda_tta.data import Images
from soda_tta.types import Array

PREPARED_BYTES = 2**30  # of restored versions kept at once: at 224 px those of about 90 images
LOOKED_AT = 64  # images that tell whether a repair finds anything to do
LITTLE = 1e-3  # mean change of a repair that is not worth a query
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

    def without_effect(self) -> Array:
        """For each part of the bank, whether it is a repair that finds nothing to do here."""
        few = min(LOOKED_AT, max(1, ASKED_BYTES // self.image_bytes))
        return idle_repairs(self.adaptor, [self.images[self.places[:few]]], self.parts)

    def answers(self, thetas: Array, chosen: Array, box: Box) -> Array:
        """The responses of the box to every candidate of every chosen image.

        Returns an array (candidates, images, classes).
        """
        (answers,) = self.answers_of([(thetas, chosen)], box)
        return answers

    def answers_of(self, questions: Sequence[tuple[Array, Array]], box: Box) -> Iterator[Array]:
        """The responses to several questions in order, each as `answers` takes it, in one flight.

        The next piece is made while the box waits for the responses to the last.
        """
        shapes: deque[tuple[int, int]] = deque()

        def flat() -> Iterator[Array]:
            for thetas, chosen in questions:
                for piece in self._pieces(thetas, chosen):
                    shapes.append((piece.shape[0], piece.shape[1]))
                    yield piece.reshape(-1, *piece.shape[2:])

        responses = (rows.reshape(*shapes.popleft(), -1) for rows in box.each(flat()))
        for thetas, chosen in questions:
            yield assembled(responses, len(thetas), len(chosen))
        next(responses, None)  # the flight ends

    def _pieces(self, thetas: Array, chosen: Array) -> Iterator[Array]:
        """The images of a question as they are sent: (candidates, images, ...)."""
        if self.prepared is not None:
            everything = np.array_equal(chosen, np.arange(len(self.places)))
            prepared = self.prepared if everything else self.prepared[chosen]
            yield from self._mixed(prepared, thetas)
            return
        # Large images are restored again for every question, as many as are sent together and only
        # as the question needs them.
        used = tuple(bool(column.any()) for column in thetas[:, : len(MIXED)].T)
        size = max(1, ASKED_BYTES // self.image_bytes)
        for start in range(0, len(chosen), size):
            images = self.images[self.places[chosen[start : start + size]]]
            yield from self._mixed(self.adaptor.prepare(images, used), thetas)

    def _mixed(self, prepared: Array, thetas: Array) -> Iterator[Array]:
        """Images of some candidates at a time, so that memory stays small."""
        most = min(ASKED_AT_ONCE, ASKED_BYTES // self.image_bytes)
        size = max(1, most // max(1, len(prepared)))
        for start in range(0, len(thetas), size):
            yield self.adaptor.mix(prepared, thetas[start : start + size])


def idle_repairs(adaptor: BankAdaptor, pieces: Iterable[Array], parts: Sequence[bool]) -> Array:
    """For each part of the bank, whether it is a repair that finds nothing to do in these images.

    Parameters
    ----------
    adaptor : the bank.
    pieces : the images, some at a time.
    parts : which of the mixed parts may be used at all.
    """
    repairs = tuple(
        allowed and part.family in REPAIRS for part, allowed in zip(MIXED, parts, strict=True)
    )
    changes = [
        np.abs(adaptor.prepare(piece, repairs)[:, 1:]).mean(axis=(2, 3, 4)) for piece in pieces
    ]
    idle = np.zeros(len(PARTS), bool)
    idle[: len(MIXED)] = np.array(repairs) & (np.concatenate(changes).mean(axis=0) < LITTLE)
    return idle


def assembled(responses: Iterator[Array], candidates: int, images: int) -> Array:
    """The responses to one question, as an array (candidates, images, classes)."""
    parts: list[Array] = []  # all candidates of some images each
    rows: list[Array] = []  # of the part under way
    while sum(part.shape[1] for part in parts) < images:
        rows.append(next(responses))
        if sum(len(each) for each in rows) == candidates:
            parts.append(np.concatenate(rows))
            rows = []
    return np.concatenate(parts, axis=1)

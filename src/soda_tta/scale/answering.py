"""One shard: its images are decoded, adapted, sent to the model, and written as one file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box, Ledger, Meter
from soda_tta.data.archives.contents import contents
from soda_tta.data.archives.places import Place
from soda_tta.data.archives.shards import Shard
from soda_tta.data.reading import Reading
from soda_tta.engine.work import Interrupted
from soda_tta.masking import masked
from soda_tta.scale.ahead import Decoded, Decoding, decoded_windows
from soda_tta.scale.answer_file import AnswerWriter
from soda_tta.types import Array

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Answering:
    """How the images of a shard are answered.

    Parameters
    ----------
    adaptor : Adaptor
    box : Box
    reading : Reading
        How files are decoded.
    all_probabilities : bool
        Whether rows hold the probabilities of all classes.
    threads : int
        For decoding.
    """

    adaptor: Adaptor
    box: Box
    reading: Reading
    all_probabilities: bool
    threads: int


class Answered(NamedTuple):
    """What became of a shard."""

    images: int
    errors: int
    queries: int


def answer_shard(
    shard: Shard,
    how: Answering,
    out: Place,
    name: str,
    stop: Callable[[], bool] = lambda: False,
) -> Answered:
    """Answer every image of a shard and write the rows, in the order of the images.

    Parameters
    ----------
    shard : Shard
    how : Answering
    out : Place
        Where the file is written: whole, or not at all.
    name : str
        Of the file.
    stop : callable, optional
        Called after every batch; if it returns True, `Interrupted` is raised.
    """
    ledger = Ledger()
    images = errors = 0
    with out.new_file(name) as path, AnswerWriter(path, how.all_probabilities) as file:
        for row in rows_of(shard, how, ledger, stop):
            file.write(row)
            images += 1
            errors += row[5] is not None
    return Answered(images, errors, ledger.total)


def rows_of(
    shard: Shard, how: Answering, ledger: Ledger, stop: Callable[[], bool] = lambda: False
) -> Iterator[Row]:
    """One row per image: name, class, confidence, condition, distance, error[, probabilities]."""
    waiting: deque[Window] = deque()  # windows whose pieces are on their way to the model

    def pieces() -> Iterator[Array]:
        decoding = Decoding(how.reading, how.box.input.view, how.box.at_once, how.threads)
        for images in decoded_windows(contents(shard), decoding):
            window = Window(images, how)
            waiting.append(window)
            yield from window.pieces()

    box = Meter(how.box, ledger).asking("serve")
    for rows in box.each(pieces()):
        while not waiting[0].expected:  # no image of it could be read
            yield from waiting.popleft().rows()
        waiting[0].take(rows)
        if waiting[0].is_complete:
            yield from waiting.popleft().rows()
        if stop():
            raise Interrupted
    while waiting:
        yield from waiting.popleft().rows()


class Window:
    """Consecutive images, sent to the model in one piece per size.

    Parameters
    ----------
    images : list of Decoded
    how : Answering
    """

    def __init__(self, images: list[Decoded], how: Answering) -> None:
        self.images = images
        self.how = how
        by_size: dict[tuple[int, ...], list[int]] = {}
        for place, image in enumerate(images):
            if image.pixels is not None:
                by_size.setdefault(image.pixels.shape, []).append(place)
        self.expected: deque[list[int]] = deque(by_size.values())
        self.answers: dict[int, tuple[Any, ...]] = {}
        self.routes: deque[tuple[Array | None, Array | None]] = deque()

    def pieces(self) -> Iterator[Array]:
        """The adapted images, size by size."""
        for places in list(self.expected):
            stacked = np.stack([self._pixels(place) for place in places])
            adapted, conditions, distances = adapted_with_routes(self.how.adaptor, stacked)
            self.routes.append((conditions, distances))
            yield self.how.adaptor.answering.sent(adapted)

    def _pixels(self, place: int) -> Array:
        image = self.images[place]
        assert image.pixels is not None
        self.images[place] = image._replace(pixels=None)  # no longer needed
        return image.pixels

    def take(self, probabilities: Array) -> None:
        """The responses to the next piece."""
        probabilities = self.how.adaptor.answering.received(probabilities)
        places = self.expected.popleft()
        conditions, distances = self.routes.popleft()
        best = probabilities.argmax(axis=1)
        for row, place in enumerate(places):
            condition = None if conditions is None else conditions[row]
            answer = (
                int(best[row]),
                probabilities[row, best[row]],
                None if condition is None or condition < 0 else int(condition),
                None if distances is None else distances[row],
                None,
            )
            self.answers[place] = (
                (*answer, probabilities[row]) if self.how.all_probabilities else answer
            )

    @property
    def is_complete(self) -> bool:
        """Whether every piece has been answered."""
        return not self.expected

    def rows(self) -> Iterator[Row]:
        """One row per image, in the order of the images."""
        more = (None,) if self.how.all_probabilities else ()
        for place, image in enumerate(self.images):
            unread = (None, None, None, None, image.error, *more)
            yield (as_text(image.name), *self.answers.get(place, unread))


def adapted_with_routes(
    adaptor: Adaptor, images: Array
) -> tuple[Array, Array | None, Array | None]:
    """Adapted images; the condition of each and its distance, if the adaptor has conditions.

    A condition is a number, and -1 for an image that is unlike all conditions.
    """
    routed = getattr(adaptor, "routed", None)
    if routed is None:
        return adaptor(images), None, None
    adapted, routes = routed(images)
    return adapted, np.where(routes.familiar, routes.conditions, -1), routes.distances


def as_text(name: str) -> str:
    """A name that may be stored: bytes that are not UTF-8 as escapes, addresses without keys."""
    return masked(name.encode(errors="backslashreplace").decode())

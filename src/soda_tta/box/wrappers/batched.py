"""Several requests at once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from copy import copy

import numpy as np

from soda_tta.box.box import Box, Received, Wrapper, not_kept
from soda_tta.box.input import check_images
from soda_tta.types import Array

AHEAD = 2  # pieces that wait for a worker while the next one is prepared


class Batched(Wrapper):
    """Split a call into requests, over all workers, and keep several of them in flight.

    Around `Retrying`, a request that fails is retried alone: the others are not billed twice.

    Parameters
    ----------
    box : Box
        Must be safe to call from several threads, unless there is one worker.
    batch : int, optional
        Images per request, at most. Default: the batch of the box.
    workers : int, default 4
        Requests in flight at once.

    Examples
    --------
    >>> from soda_tta.box.backends.python import CallableBox
    >>> halves = CallableBox(lambda images: np.full((len(images), 2), 0.5))
    >>> Batched(halves, batch=2, workers=3)(np.zeros((5, 3, 4, 4), np.float32)).shape
    (5, 2)
    """

    def __init__(self, box: Box, *, batch: int | None = None, workers: int = 4) -> None:
        super().__init__(box)
        self.batch = batch or box.batch
        self.workers = workers

    @property
    def at_once(self) -> int:
        return self.batch * self.workers

    def limited(self, most: int) -> Batched:
        """The same with at most `most` images in flight.

        A model with a fixed batch gets whole batches: a smaller request would be filled up.
        """
        same = copy(self)
        if self.fixed_batch:
            same.workers = min(self.workers, max(1, most // self.batch))
        else:
            same.workers = min(self.workers, most)
            same.batch = min(self.batch, most // same.workers)
        return same

    def around_requests(self, wrap: Callable[[Box], Box]) -> Batched:
        """The same with a wrapper around each request."""
        same = copy(self)
        same.box = wrap(self.box)
        return same

    def places(self, count: int) -> list[slice]:
        """How a call about so many images is split."""
        size = self.batch
        if not self.fixed_batch:
            size = max(1, min(size, math.ceil(count / self.workers)))
        return [slice(start, min(start + size, count)) for start in range(0, count, size)]

    def requests(self, count: int) -> int:
        return len(self.places(count))

    def __call__(self, images: Array) -> Array:
        images = check_images(images)
        if len(self.places(len(images))) < 2:
            return self.box(images)
        (rows,) = self.each([images])
        return rows

    def each(self, pieces: Iterable[Array], received: Received = not_kept) -> Iterator[Array]:
        return self.together(((self, piece) for piece in pieces), received)

    def together(
        self, pieces: Iterable[tuple[Batched, Array]], received: Received = not_kept
    ) -> Iterator[Array]:
        """As `each`, where every piece names the box that it is for.

        Those boxes are this one with other wrappers around each request: they share its workers.
        """
        if self.workers == 1:
            for number, (batched, piece) in enumerate(pieces):
                rows = []
                for place in self.places(len(piece)):
                    rows.append(batched.box(piece[place]))
                    received(number, place, rows[-1])
                yield np.concatenate(rows)
            return
        try:
            yield from Flight(self, received).of(pieces)
        finally:
            self.box.give_up(False)


class Flight:
    """The requests of one call; after the first failure nothing more is sent."""

    def __init__(self, batched: Batched, received: Received) -> None:
        self.batched = batched
        self.received = received
        self.failures: list[BaseException] = []

    def of(self, pieces: Iterable[tuple[Batched, Array]]) -> Iterator[Array]:
        """The responses in the order of the pieces."""
        waiting: deque[list[Future[Array]]] = deque()
        with ThreadPoolExecutor(self.batched.workers) as pool:
            try:
                for number, (batched, piece) in enumerate(pieces):
                    waiting.append(
                        [
                            pool.submit(self._send, batched.box, number, place, piece[place])
                            for place in self.batched.places(len(piece))
                        ]
                    )
                    while len(waiting) > (0 if self.failures else AHEAD):
                        yield joined(waiting.popleft())
                while waiting:
                    yield joined(waiting.popleft())
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)  # unsent requests are not billed
                self.batched.box.give_up(True)  # nor are retries
                if isinstance(error, CancelledError):
                    raise self.failures[0] from None
                raise

    def _send(self, box: Box, number: int, place: slice, request: Array) -> Array:
        if self.failures:  # checked here, because the thread that collects may notice too late
            raise CancelledError
        try:
            rows = box(request)
            self.received(number, place, rows)
            return rows
        except BaseException as error:
            self.failures.append(error)
            raise


def joined(requests: list[Future[Array]]) -> Array:
    """The rows of a piece."""
    return np.concatenate([request.result() for request in requests])

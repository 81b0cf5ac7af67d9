"""Several requests at once."""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import check_images
from soda_tta.types import Array


class Batched(Wrapper):
    """Split a call into requests and keep several of them in flight.

    Around `Retrying`, a request that fails is retried alone: the others are not billed twice.

    Parameters
    ----------
    box : Box
        Must be safe to call from several threads.
    batch : int, optional
        Images per request. Default: the batch of the box.
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

    def __call__(self, images: Array) -> Array:
        images = check_images(images)
        requests = [
            images[start : start + self.batch] for start in range(0, len(images), self.batch)
        ]
        if len(requests) < 2:
            return self.box(images)
        try:
            return self._send(requests)
        finally:
            self.box.give_up(False)

    def _send(self, requests: list[Array]) -> Array:
        """The responses in the order of the requests; after the first failure nothing is sent."""
        failures: list[BaseException] = []

        def send(request: Array) -> Array:
            if failures:  # checked here, because the thread that collects may notice too late
                raise CancelledError
            try:
                return self.box(request)
            except BaseException as error:
                failures.append(error)
                raise

        with ThreadPoolExecutor(min(self.workers, len(requests))) as pool:
            futures = [pool.submit(send, request) for request in requests]
            try:
                return np.concatenate([future.result() for future in futures])
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)  # unsent requests are not billed
                self.box.give_up(True)  # nor are retries
                if isinstance(error, CancelledError):
                    raise failures[0] from None
                raise

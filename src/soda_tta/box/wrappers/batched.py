"""Several requests at once."""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.facts import check_images
from soda_tta.types import Array


class Batched(Wrapper):
    """Splits a call into requests of `batch` images and keeps `workers` of them under way.

    Around `Retrying`, a request that fails is asked again alone: its neighbours are not paid twice.
    """

    def __init__(self, box: Box, *, batch: int | None = None, workers: int = 4) -> None:
        super().__init__(box)
        self.batch, self.workers = batch or box.batch, workers

    @property
    def at_once(self) -> int:
        return self.batch * self.workers

    def __call__(self, images: Array) -> Array:
        images = check_images(images)
        pieces = [images[start : start + self.batch] for start in range(0, len(images), self.batch)]
        if len(pieces) < 2:
            return self.box(images)
        failed: list[BaseException] = []

        def ask(piece: Array) -> Array:
            if failed:  # whoever fails says so itself: the thread that collects may be late
                raise CancelledError
            try:
                return self.box(piece)
            except BaseException as error:
                failed.append(error)
                raise

        try:
            with ThreadPoolExecutor(min(self.workers, len(pieces))) as pool:
                futures = [pool.submit(ask, piece) for piece in pieces]
                try:
                    return np.concatenate([future.result() for future in futures])
                except BaseException as error:
                    pool.shutdown(
                        wait=False, cancel_futures=True
                    )  # do not pay for requests not yet sent
                    self.box.give_up(True)  # nor for those that would be sent again
                    if isinstance(error, CancelledError):
                        raise failed[0] from None
                    raise
        finally:
            self.box.give_up(False)

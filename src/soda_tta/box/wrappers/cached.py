"""Identical queries are billed once."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from concurrent.futures import Future

import numpy as np

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import check_images
from soda_tta.types import Array


class Cached(Wrapper):
    """Remember responses by the bytes of the image.

    Put it outside `Metered`: `Cached(Metered(box, ...))` counts only queries that reach the model.

    Parameters
    ----------
    box : Box
    capacity : int, default 100,000
        Responses to remember; the least recently used one is forgotten first.

    Examples
    --------
    >>> from soda_tta.box.backends.python import CallableBox
    >>> box = Cached(CallableBox(lambda images: np.full((len(images), 2), 0.5)))
    >>> _ = box(np.zeros((4, 3, 8, 8), np.float32)); box.hits
    3
    """

    def __init__(self, box: Box, capacity: int = 100_000) -> None:
        super().__init__(box)
        self.capacity = capacity
        self.hits = 0
        self._responses: OrderedDict[bytes, Future[Array]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, images: Array) -> Array:
        images = check_images(images)
        if not len(images):
            return self.box(images)
        shape = repr(images.shape[1:]).encode()
        keys = [
            hashlib.blake2b(image.tobytes(), digest_size=16, key=shape).digest() for image in images
        ]
        with self._lock:
            # one image per new key
            new = {key: index for index, key in enumerate(keys) if key not in self._responses}
            self.hits += len(keys) - len(new)
            # a thread that queries the same image meanwhile waits for our response
            self._responses.update((key, Future()) for key in new)
            responses = {key: self._responses[key] for key in keys}
            for key in responses:
                self._responses.move_to_end(key)
            while len(self._responses) > self.capacity:
                self._responses.popitem(last=False)
        if new:
            self._query(images, new, responses)
        return np.stack([responses[key].result() for key in keys])

    def _query(
        self, images: Array, new: dict[bytes, int], responses: dict[bytes, Future[Array]]
    ) -> None:
        """Query the new images and hand the responses to everyone who waits for them."""
        try:
            rows = self.box(images[list(new.values())])
        except BaseException as error:
            with self._lock:
                for key in new:
                    self._responses.pop(key, None)  # a failure is not remembered
            for key in new:
                responses[key].set_exception(error)
            raise
        for key, row in zip(new, rows, strict=True):
            responses[key].set_result(row)

"""The images of one request, adapted; whatever fails here, the request goes on as it came."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.adaptors import PLAIN, Answering
from soda_tta.adaptors.answering import VIEWS
from soda_tta.errors import ImageError
from soda_tta.serve.limits import Limits
from soda_tta.serve.live import LiveAdaptor
from soda_tta.serve.logs import Log
from soda_tta.serve.metrics import Metrics
from soda_tta.serve.pixels import Pixels
from soda_tta.serve.recent import Recent
from soda_tta.types import Array


@dataclass(frozen=True)
class Adapted:
    """The images of a request.

    Attributes
    ----------
    images : array or None
        As they came, float32 NCHW RGB in [0, 1]; None if the tensor does not hold such images.
    tensor : array or None
        What is to be sent in place of the client's tensor; None: send that.
    routes : optional
        Where the images belong, for the learner.
    answering : Answering
        How the responses become the answer.
    views : tuple of array
        What is to be sent for its further views, each in place of the client's tensor.
    """

    images: Array | None = None
    tensor: Array | None = None
    routes: Any = None
    answering: Answering = PLAIN
    views: tuple[Array, ...] = ()


UNTOUCHED = Adapted()
SLOW = 0.1  # seconds: assumed before the first calls
QUICK = 1e-3  # seconds
SMOOTHING = 0.1


class Adapting:
    """Adapts the tensors of requests. Never raises.

    Until `begin` is called, and while it is paused or failing, every tensor stays as it is.
    """

    def __init__(self, metrics: Metrics, log: Log, limits: Limits) -> None:
        self.metrics = metrics
        self.log = log
        self.limits = limits
        self.pixels: Pixels | None = None
        self.live: LiveAdaptor | None = None
        self.recent: Recent | None = None  # images to show; None keeps none
        self.paused = False
        self.seconds = SLOW  # that a call takes, smoothed
        self.failing = False  # the learner: nobody watches whether the adaptor still helps

    def begin(self, pixels: Pixels, live: LiveAdaptor) -> None:
        """Adapt from now on."""
        self.live = live
        self.pixels = pixels

    @property
    def changes_nothing(self) -> bool:
        """Whether the next tensor stays as it is, and nobody needs to know what it shows."""
        if self.pixels is None or self.live is None:
            return True
        return getattr(self.live, "changes_nothing", False) and not self._is_shown

    @property
    def is_quick(self) -> bool:
        """Whether a call takes less time than to hand it to a thread and back."""
        return self.seconds < QUICK or self.changes_nothing

    def __call__(self, tensor: Array, key: str | None = None) -> Adapted:
        """The images in a tensor, and what to send."""
        pixels, live = self.pixels, self.live
        if pixels is None or live is None:
            return UNTOUCHED
        if not self._is_small(tensor):
            self.metrics.images("too large", len(tensor))
            return UNTOUCHED
        if self.changes_nothing:
            self.metrics.images("unchanged", count_of(tensor))
            return UNTOUCHED
        images = None
        try:
            images = pixels.images(tensor)
            if images is None:
                self.metrics.images("not images", count_of(tensor))
                return UNTOUCHED
            if self.paused or self.failing:
                self.metrics.images("paused", len(images))
                return Adapted(None if self.paused else images)
            return self._adapt(tensor, images, pixels, live, key)
        except Exception as error:
            self.metrics.error("adaptor")
            self.log.warning("adaptor failed", error=error)
            self.metrics.images("failed", count_of(tensor))
            return Adapted(images)

    def _adapt(
        self, tensor: Array, images: Array, pixels: Pixels, live: LiveAdaptor, key: str | None
    ) -> Adapted:
        start = time.perf_counter()
        changed, routes = live.adapted(images, key)
        different = is_changed(images, changed)
        seconds = time.perf_counter() - start
        self.seconds += SMOOTHING * (seconds - self.seconds)
        self.metrics.adapt_seconds.observe(seconds)
        unfamiliar = 0 if routes is None else int(np.count_nonzero(~routes.familiar))
        count = int(different.sum())
        if self.recent is not None:
            self.recent.offer(images, changed, different, key, routes)
        self.metrics.images("adapted", count)
        self.metrics.images("unfamiliar", unfamiliar)
        self.metrics.images("unchanged", len(images) - count - unfamiliar)
        answering = live.answering(key)
        views = tuple(pixels.tensor(VIEWS[name](changed)) for name in answering.views)
        if not count:
            return Adapted(images, None, routes, answering, views)
        sent = tensor.copy()
        sent[different] = pixels.tensor(changed[different])
        return Adapted(images, sent, routes, answering, views)

    @property
    def _is_shown(self) -> bool:
        """Whether an image of the next request is kept to show it."""
        return self.recent is not None and self.recent.is_due

    def _is_small(self, tensor: Array) -> bool:
        """Whether the tensor is within the limits of what is adapted."""
        if tensor.ndim != 4 or not len(tensor):
            return True  # not images: dealt with later
        pixels = tensor[0].size // 3
        return len(tensor) <= self.limits.images and pixels <= self.limits.pixels


def is_changed(images: Array, adapted: Array) -> Array:
    """Which images an adaptor has changed; raises an ImageError if they are not images."""
    if adapted is images:
        return np.zeros(len(images), bool)
    if adapted.shape != images.shape or adapted.dtype != np.float32:
        raise ImageError(f"the adaptor returned {adapted.dtype} of shape {adapted.shape}.")
    if not (adapted.min() >= 0 and adapted.max() <= 1):  # also refuses NaN
        raise ImageError("the adaptor returned pixels outside of [0, 1].")
    different: Array = (adapted != images).any(axis=(1, 2, 3))
    return different


def count_of(tensor: Array) -> int:
    """The images that a tensor would hold."""
    return len(tensor) if tensor.ndim else 1

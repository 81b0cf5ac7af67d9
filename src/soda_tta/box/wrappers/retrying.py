"""Ask again when a service is briefly unavailable."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from soda_tta.box.box import Box, Wrapper
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.types import Array

T = TypeVar("T")


class Retrying(Wrapper):
    """Waits and asks again: exponential back-off with full jitter, never less than the server's `Retry-After`.

    Only `BoxUnavailable` is retried; a wrong answer stays wrong. The jitter is the one thing here that is not
    seeded: clients that fail together must not come back together.
    """

    def __init__(
        self,
        box: Box,
        *,
        attempts: int = 5,
        first_wait: float = 0.5,
        longest_wait: float = 60.0,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        super().__init__(box)
        self.hopeless = threading.Event()
        if attempts < 1:
            raise BoxError(f"{attempts} attempts make no sense; one is the least.")
        self.patience = dict(attempts=attempts, first_wait=first_wait, longest_wait=longest_wait)
        self.sleep = sleep or self.hopeless.wait  # an event wakes who sleeps by it

    def __call__(self, images: Array) -> Array:
        return patiently(
            lambda: self.box(images), sleep=self.sleep, until=self.hopeless.is_set, **self.patience
        )

    def give_up(self, now: bool) -> None:
        """Other threads that wait to ask again raise instead, while `now` holds."""
        (self.hopeless.set if now else self.hopeless.clear)()


def patiently(
    ask: Callable[[], T],
    *,
    attempts: float = 5,
    first_wait: float = 0.5,
    longest_wait: float = 60.0,
    sleep: Callable[[float], object] = time.sleep,
    until: Callable[[], bool] = lambda: False,
) -> T:
    """Call `ask` until it is available, at most so many times, and not again once `until` holds."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return ask()
        except BoxUnavailable as error:
            if attempt >= attempts:
                raise BoxUnavailable(
                    f"{str(error).rstrip('.')}. Gave up after {attempt} attempts."
                ) from error
            if (error.retry_after or 0) > longest_wait:
                raise BoxUnavailable(
                    f"{error} It asks to wait {error.retry_after:g} s; try later."
                ) from error
            back_off = random.uniform(0, min(longest_wait, first_wait * 2 ** (attempt - 1)))
            if not until():
                sleep(max(error.retry_after or 0, back_off))
            if until():
                raise

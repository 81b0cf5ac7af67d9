"""Ask again when a service is briefly unavailable."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import Array
from soda_tta.errors import BoxError, BoxUnavailable


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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(box)
        if attempts < 1:
            raise BoxError(f"{attempts} attempts make no sense; one is the least.")
        self.attempts, self.first_wait, self.longest_wait, self.sleep = (
            attempts,
            first_wait,
            longest_wait,
            sleep,
        )

    def __call__(self, images: Array) -> Array:
        for attempt in range(1, self.attempts + 1):
            try:
                return self.box(images)
            except BoxUnavailable as error:
                if attempt == self.attempts:
                    raise BoxUnavailable(f"{error} Gave up after {attempt} attempts.") from error
                if (error.retry_after or 0) > self.longest_wait:
                    raise BoxUnavailable(f"{error} It asks to wait {error.retry_after:g} s; try later.") from error
                back_off = random.uniform(0, min(self.longest_wait, self.first_wait * 2 ** (attempt - 1)))
                self.sleep(max(error.retry_after or 0, back_off))
        raise AssertionError("unreachable: attempts is at least 1")

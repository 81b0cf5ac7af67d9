"""Retry when a service is briefly unavailable."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from soda_tta.box.box import Box, Waiting, Wrapper, not_shown
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.types import Array

T = TypeVar("T")
RETRIES = 4  # of a request, unless stated


class Retrying(Wrapper):
    """Retry with exponential back-off and full jitter, not before the server's `Retry-After`.

    Only `BoxUnavailable` is retried: a wrong response stays wrong. The jitter is not seeded,
    because clients that fail together must not come back together.

    Parameters
    ----------
    box : Box
    attempts : int, default 5
        Requests in total, at least 1.
    first_wait : float, default 0.5
        Longest wait before the first retry, in seconds. It doubles with every retry.
    longest_wait : float, default 60
        Upper bound of every wait, in seconds. If the server asks for more, the request fails.
    sleep : callable, optional
        Called with the seconds to wait. Default: wait, but wake up on `give_up`.

    Examples
    --------
    >>> import numpy as np
    >>> from soda_tta.box.backends.python import CallableBox
    >>> Retrying(CallableBox(lambda images: np.full((len(images), 2), 0.5)), attempts=3)
    Retrying(CallableBox(<lambda>))
    """

    def __init__(
        self,
        box: Box,
        *,
        attempts: int = 1 + RETRIES,
        first_wait: float = 0.5,
        longest_wait: float = 60.0,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        super().__init__(box)
        if attempts < 1:
            raise BoxError(f"{attempts} is not a valid number of attempts; it must be at least 1.")
        self.attempts = attempts
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        self.cancelled = threading.Event()
        self.sleep = sleep or self.cancelled.wait  # an event wakes the threads that wait for it
        self.waiting: Waiting = not_shown

    def around_attempts(self, wrap: Callable[[Box], Box], waiting: Waiting = not_shown) -> Box:
        same = super().around_attempts(wrap, waiting)
        assert isinstance(same, Retrying)
        same.waiting = waiting
        return same

    def __call__(self, images: Array) -> Array:
        return retry(
            lambda: self.box(images),
            attempts=self.attempts,
            first_wait=self.first_wait,
            longest_wait=self.longest_wait,
            sleep=self.sleep,
            cancelled=self.cancelled.is_set,
            waiting=self.waiting,
        )

    def give_up(self, now: bool) -> None:
        """While `now` is True, threads that wait for a retry raise instead."""
        if now:
            self.cancelled.set()
        else:
            self.cancelled.clear()
        super().give_up(now)


def retry(
    call: Callable[[], T],
    *,
    attempts: int = 1 + RETRIES,
    first_wait: float = 0.5,
    longest_wait: float = 60.0,
    sleep: Callable[[float], object] = time.sleep,
    cancelled: Callable[[], bool] = lambda: False,
    waiting: Waiting = not_shown,
) -> T:
    """Call until it does not raise `BoxUnavailable`; parameters as in `Retrying`.

    Once `cancelled()` is True, the error of the last attempt is raised instead of a retry.
    `waiting` receives every wait and its reason. If another server of the model is ready, there is
    no wait.

    Examples
    --------
    >>> retry(lambda: 42)
    42
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            return call()
        except BoxUnavailable as error:
            requested_wait = 0 if error.elsewhere else error.retry_after or 0
            if attempt >= attempts:
                text = f"{str(error).rstrip('.')}. Gave up after {count(attempt)}."
                raise BoxUnavailable(text, sent=error.sent) from error
            if requested_wait > longest_wait:
                text = f"{error} The server asks to wait {requested_wait:g} s; try later."
                raise BoxUnavailable(text, sent=error.sent) from error
            back_off = random.uniform(0, min(longest_wait, first_wait * 2 ** (attempt - 1)))
            if not cancelled() and not error.elsewhere:
                seconds = max(requested_wait, back_off)
                waiting(seconds, str(error))
                sleep(seconds)
            if cancelled():
                raise


def count(attempts: int) -> str:
    """A number of attempts in words."""
    return "1 attempt" if attempts == 1 else f"{attempts} attempts"

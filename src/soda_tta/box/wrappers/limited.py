"""No more queries per second, and no more requests at once, than the model allows."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from soda_tta.box.box import Box, Waiting, Wrapper, not_shown
from soda_tta.errors import BoxUnavailable
from soda_tta.types import Array

SHOWN = 0.5  # seconds: shorter waits are not shown


class Limiter:
    """A token bucket that holds one request, and a number of places for requests in flight.

    A request of n images takes n / `max_qps` seconds of the time line, so requests are spread
    evenly. Any T seconds see at most `max_qps` x T queries and one request more.

    Parameters
    ----------
    max_qps : float, optional
        Queries (images) per second. Default: no limit.
    max_concurrent : int, optional
        Requests in flight. Default: no limit.
    clock, sleep : callable, optional
        Seconds that never go back, and how to wait. Default: wait, but wake up on `give_up`.
    """

    def __init__(
        self,
        max_qps: float | None = None,
        max_concurrent: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.max_qps = math.inf if max_qps is None else max_qps
        self.max_concurrent = math.inf if max_concurrent is None else max_concurrent
        self.clock = clock
        self.cancelled = threading.Event()
        self.sleep = sleep or self.cancelled.wait  # an event wakes the threads that wait for it
        self.in_flight = 0
        self.free_from = -math.inf  # when the next request may be sent
        self.changed = threading.Condition()

    def enter(self, queries: int, waiting: Waiting = not_shown) -> None:
        """Wait for a place and for the time of so many queries."""
        with self.changed:
            self.changed.wait_for(self._may_enter)
            if self.cancelled.is_set():
                raise not_sent()
            self.in_flight += 1
            turn = max(self.clock(), self.free_from)
            self.free_from = turn + queries / self.max_qps
        try:
            self._wait_for(turn, waiting)
        except BaseException:
            with self.changed:
                self.free_from -= queries / self.max_qps  # it was not sent
            self.leave()
            raise

    def _may_enter(self) -> bool:
        return self.in_flight < self.max_concurrent or self.cancelled.is_set()

    def _wait_for(self, turn: float, waiting: Waiting) -> None:
        if turn - self.clock() >= SHOWN:
            waiting(turn - self.clock(), f"at most {self.max_qps:g} queries per second.")
        while turn > self.clock():
            self.sleep(turn - self.clock())
            if self.cancelled.is_set():
                raise not_sent()

    def enter_at_once(self, queries: int) -> bool:
        """Take a place and the time of so many queries, if there is no need to wait."""
        with self.changed:
            if self.in_flight >= self.max_concurrent or self.free_from > self.clock():
                return False
            self.in_flight += 1
            self.free_from = self.clock() + queries / self.max_qps
            return True

    def leave(self) -> None:
        """Give a place back: the response has come, or never will."""
        with self.changed:
            self.in_flight -= 1
            self.changed.notify()

    def give_up(self, now: bool) -> None:
        """While `now` is True, threads that wait raise instead."""
        if now:
            self.cancelled.set()
            with self.changed:
                self.changed.notify_all()
        else:
            self.cancelled.clear()


def not_sent() -> BoxUnavailable:
    """What a request raises that waited until the caller no longer needed it."""
    return BoxUnavailable("the request was not sent: the run was stopped.", sent=False)


class Limited(Wrapper):
    """Sends a request when the limiter allows it.

    Inside `Retrying`, so that every attempt is limited; outside `Metered`, so that a request that
    waits is not counted as sent.

    Parameters
    ----------
    box : Box
    limiter : Limiter
        May be shared by several boxes of one model.

    Examples
    --------
    >>> import numpy as np
    >>> from soda_tta.box.backends.python import CallableBox
    >>> halves = CallableBox(lambda images: np.full((len(images), 2), 0.5))
    >>> Limited(halves, Limiter(max_qps=100))(np.zeros((5, 3, 4, 4), np.float32)).shape
    (5, 2)
    """

    def __init__(self, box: Box, limiter: Limiter) -> None:
        super().__init__(box)
        self.limiter = limiter
        self.waiting: Waiting = not_shown

    def around_attempts(self, wrap: Callable[[Box], Box], waiting: Waiting = not_shown) -> Box:
        same = super().around_attempts(wrap, waiting)
        assert isinstance(same, Limited)
        same.waiting = waiting
        return same

    def __call__(self, images: Array) -> Array:
        self.limiter.enter(len(images), self.waiting)
        try:
            return self.box(images)
        finally:
            self.limiter.leave()

    def give_up(self, now: bool) -> None:
        self.limiter.give_up(now)
        super().give_up(now)

"""Places for requests: so many at once, so many that wait, and no more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from soda_tta.serve.limits import Limits
from soda_tta.serve.metrics import Metrics


class Full(Exception):
    """Too many requests wait already, or too many bytes are held."""


class Places:
    """Who may ask the model now. The limits may change at any time.

    Parameters
    ----------
    limits : callable
        Returns the limits that hold now.
    metrics : Metrics
    """

    def __init__(self, limits: Callable[[], Limits], metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self.taken = 0
        self.bytes = 0
        self.waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for the block, in the order of arrival; raises `Full`."""
        if self.taken < self.limits().concurrency and not self.waiting:
            self.taken += 1
        else:
            await self._wait()
        self.metrics.in_flight.set(self.taken)
        try:
            yield
        finally:
            self.taken -= 1
            self._admit()
            self.metrics.in_flight.set(self.taken)

    async def _wait(self) -> None:
        if len(self.waiting) >= self.limits().queue:
            raise Full
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        self.metrics.waiting.set(len(self.waiting))
        try:
            await turn
        except asyncio.CancelledError:  # the client went away
            if turn.done() and not turn.cancelled():
                self.taken -= 1
                self._admit()
            else:
                self.waiting.remove(turn)
            raise
        finally:
            self.metrics.waiting.set(len(self.waiting))

    def _admit(self) -> None:
        """Give free places to those who wait longest."""
        while self.waiting and self.taken < self.limits().concurrency:
            turn = self.waiting.popleft()
            if not turn.done():
                self.taken += 1
                turn.set_result(None)

    def hold(self, size: int) -> None:
        """Count the bytes of a request; raises `Full`."""
        if self.bytes + size > self.limits().memory_bytes:
            raise Full
        self.bytes += size

    def release(self, size: int) -> None:
        """Count them no longer."""
        self.bytes -= size

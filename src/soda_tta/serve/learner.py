"""Learning behind the traffic: a thread of low priority that no request waits for."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from soda_tta.errors import BoxError
from soda_tta.serve.adapting import Adapting
from soda_tta.serve.logs import Log
from soda_tta.serve.metrics import Metrics
from soda_tta.types import Array

NICE = 10  # above the priority of the threads that serve
MOST_IMAGES = 512  # that wait for the learner; older ones are dropped
IDLE_SECONDS = 0.5
SAVE_SECONDS = 30.0
FIRST_WAIT = 1.0  # seconds after a failure; doubles with each
LONGEST_WAIT = 60.0

Reader = Callable[[], Array | None]  # the probabilities of a response; they are read in the thread


@dataclass(frozen=True)
class Arrival:
    """Images of a request as they came, and how to read the response to what was sent."""

    images: Array
    answers: Reader
    key: str | None = None
    routes: Any = None
    client: str | None = None


class Learner:
    """Hands what arrived to the live adaptor, lets it learn, and saves it.

    If learning fails, images pass unchanged until it works again: an adaptor that nobody watches
    might do harm. An error of the model is no such failure.

    Parameters
    ----------
    adapting : Adapting
        Has the live adaptor.
    saves : bool, default True
        Save the state from time to time, and at the end.
    """

    def __init__(
        self, adapting: Adapting, metrics: Metrics, log: Log, *, saves: bool = True
    ) -> None:
        self.saves = saves
        self.adapting = adapting
        self.metrics = metrics
        self.log = log
        self.arrived: deque[Arrival] = deque()
        self.images = 0
        self.missed = 0  # images that were dropped
        self.lock = threading.Lock()
        self.news = threading.Event()
        self.ended = threading.Event()
        self.failures = 0
        self.unsaved = False
        self.saving = threading.Lock()  # a reset waits for it, so that nothing old is kept
        self.saved = time.monotonic()
        self.thread = threading.Thread(target=self._run, name="learner", daemon=True)
        metrics.learner_ok.set(1)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def offer(self, arrival: Arrival) -> None:
        """Hand over what arrived; quick, from any thread."""
        with self.lock:
            self.arrived.append(arrival)
            self.images += len(arrival.images)
            while self.images > MOST_IMAGES and len(self.arrived) > 1:
                dropped = len(self.arrived.popleft().images)
                self.images -= dropped
                self.missed += dropped
        self.news.set()

    def close(self, timeout: float = 10.0) -> None:
        """End the thread and save."""
        self.ended.set()
        self.news.set()
        if self.thread.is_alive():
            self.thread.join(timeout)
        if not self.thread.is_alive():  # otherwise a query hangs, and the last save counts
            self._save()

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # only Linux has priorities of threads
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while not self.ended.is_set():
            self._deliver()
            if not self._learn() and not self.arrived:
                self.news.wait(IDLE_SECONDS)
                self.news.clear()
            if self.unsaved and time.monotonic() - self.saved > SAVE_SECONDS:
                self._save()

    def _deliver(self) -> None:
        """Read the responses, and hand them on with their images."""
        while self.arrived and not self.ended.is_set():
            with self.lock:
                arrival = self.arrived.popleft()
                self.images -= len(arrival.images)
            try:
                rows = arrival.answers()
            except Exception as error:  # of a response that is not valid
                self.metrics.error("malformed answer")
                self.log.warning("a response of the model is not valid", error=error)
                continue
            if rows is not None:
                self._guarded(partial(self._hand_over, arrival, rows))
                self.unsaved = True

    def _hand_over(self, arrival: Arrival, rows: Array) -> None:
        self._live.arrived(
            arrival.images, rows, arrival.key, routes=arrival.routes, client=arrival.client
        )

    def _learn(self) -> bool:
        """One piece of learning; whether there may be more."""
        if self.adapting.paused or self.adapting.live is None:
            return False
        busy = self._guarded(self._live.learn)
        if busy is None:
            return False
        self.failures = 0
        self._state(failing=False)
        self.unsaved = self.unsaved or busy
        return bool(busy)

    @property
    def _live(self) -> Any:
        return self.adapting.live

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """The result of `work`; after a failure None, and a wait that grows."""
        try:
            return work()
        except BoxError as error:
            self.metrics.error("learner query")
            self.log.warning("the learner got no response from the model", error=error)
            self.ended.wait(FIRST_WAIT)
            return None
        except Exception as error:
            self.failures += 1
            self._state(failing=True)
            self.metrics.error("learner")
            self.log.warning("learning failed; images pass unchanged", error=error)
            self.ended.wait(min(FIRST_WAIT * 2 ** (self.failures - 1), LONGEST_WAIT))
            return None

    def _state(self, *, failing: bool) -> None:
        self.adapting.failing = failing
        self.metrics.learner_ok.set(not failing)

    def _save(self) -> None:
        self.saved = time.monotonic()
        if self.adapting.live is None or not self.saves:
            return
        try:
            with self.saving:
                self.adapting.live.save()
            self.unsaved = False
        except Exception as error:  # a full disk must not stop the traffic
            self.metrics.error("storage")
            self.log.warning("the state could not be saved", error=error)

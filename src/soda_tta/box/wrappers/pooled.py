"""Several servers of one model as one box."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from soda_tta.box.box import Box, Waiting, Wrapper, not_shown
from soda_tta.box.input import check_images
from soda_tta.box.ledger import Ledger
from soda_tta.box.replicas import Replica, Replicas
from soda_tta.box.wrappers.limited import Limiter
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.types import Array

STRAGGLER = 3.0  # times the median: a request that takes longer is hedged
MEASURED = 8  # responses before the median is trusted
REMEMBERED = 128  # responses that the median is of
SAVED_UP = 4.0  # hedges that may follow one another


class Pooled(Wrapper):
    """Sends each request to the replica with the fewest outstanding requests.

    A request that did not reach a replica goes to another one at once. One that did, and got no
    response, is up to `Retrying`, which counts it; its next attempt goes to another replica.

    Parameters
    ----------
    replicas : Replicas
        Shared by all boxes that are made from this one.
    identity : str, optional
        The fingerprint of the pool. Default: that of a replica.
    hedge : float, default 0
        Share of requests that may be sent to a second replica when they take three times as long
        as usual. The first response is used. Every hedge is counted as `hedged`.
    limiter : Limiter, optional
        A hedge is sent only if it allows one at once.
    """

    def __init__(
        self,
        replicas: Replicas,
        *,
        identity: str | None = None,
        hedge: float = 0.0,
        limiter: Limiter | None = None,
    ) -> None:
        super().__init__(replicas.box)
        self.replicas = replicas
        self.identity = identity
        self.hedges = Hedges(hedge)
        self.limiter = limiter or Limiter()
        self.facts: dict[str, Any] = {}  # stated after the replicas were opened
        self.ledger: Ledger | None = None

    def fingerprint(self) -> str:
        return self.identity or super().fingerprint()

    def restated(self, **facts: Any) -> Box:
        same = super().restated(**facts)
        assert isinstance(same, Pooled)
        same.facts = {**self.facts, **facts}
        return same

    def charging(self, ledger: Ledger) -> Box:
        same = super().charging(ledger)
        assert isinstance(same, Pooled)
        same.ledger = ledger
        return same

    def around_attempts(self, wrap: Callable[[Box], Box], waiting: Waiting = not_shown) -> Box:
        return wrap(self)

    def give_up(self, now: bool) -> None:
        self.hedges.given_up = now

    def __call__(self, images: Array) -> Array:
        images = check_images(images)
        tried: list[Replica] = []
        while True:
            replica = self.replicas.take(tried)
            assert replica is not None  # before all are tried, the error is raised
            tried.append(replica)
            try:
                if self.hedges.share:
                    return Race(self, images).won_from(replica)
                return self.send(replica, images)
            except BoxUnavailable as error:
                error.elsewhere = self.replicas.has_ready(tried)
                if error.sent or not error.elsewhere:
                    raise

    def send(self, replica: Replica, images: Array) -> Array:
        """The response of one replica, which was taken for it."""
        began = time.monotonic()
        outstanding = replica.outstanding
        try:
            rows = self._box_of(replica)(images)
            self._check_classes(replica, rows)
        except BoxUnavailable as error:
            self.replicas.failed(replica, error)
            raise
        except BaseException:
            self.replicas.released(replica)
            raise
        seconds = time.monotonic() - began
        self.replicas.succeeded(replica, seconds, outstanding)
        self.hedges.measured(seconds)
        return rows

    def _box_of(self, replica: Replica) -> Box:
        box = replica.box
        if box is None:  # all are set aside, and this one has never responded
            try:
                box = replica.open()
            except BoxUnavailable as error:
                error.sent = False  # no image was
                raise
            problem = self.replicas.difference(box)
            if problem is not None:
                raise BoxError(problem)
            replica.box = box
        return box.restated(**self.facts) if self.facts else box

    def _check_classes(self, replica: Replica, rows: Array) -> None:
        """Refuse a replica with another number of classes, which servers need not declare."""
        if self.box.classes is None:
            self.box.classes = rows.shape[1]
        elif rows.shape[1] != self.box.classes:
            raise BoxError(
                f"{replica.name} returned {rows.shape[1]} classes and another replica "
                f"{self.box.classes}; all addresses must serve the same model."
            )

    def __repr__(self) -> str:
        return f"Pooled({', '.join(replica.name for replica in self.replicas.all)})"


class Hedges:
    """When a request is a straggler, and whether another hedge is within the share.

    Parameters
    ----------
    share : hedges per request, at most.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.saved = 0.0  # hedges that may be sent
        self.seconds: deque[float] = deque(maxlen=REMEMBERED)  # of the last responses
        self.given_up = False
        self.lock = threading.Lock()

    def measured(self, seconds: float) -> None:
        """A response has come after so many seconds."""
        with self.lock:
            self.seconds.append(seconds)
            self.saved = min(SAVED_UP, self.saved + self.share)

    def patience(self) -> float | None:
        """Seconds after which a request is a straggler; None if that is not known yet."""
        with self.lock:
            if len(self.seconds) < MEASURED:
                return None
            return STRAGGLER * statistics.median(self.seconds)

    def take(self) -> bool:
        """Whether a hedge may be sent; it counts from now on."""
        with self.lock:
            if self.given_up or self.saved < 1:
                return False
            self.saved -= 1
            return True


class Race:
    """One request that may be sent to a second replica; the first response wins.

    The response of the other one is not used, but was computed and is counted.
    """

    def __init__(self, pooled: Pooled, images: Array) -> None:
        self.pooled = pooled
        self.images = images
        self.outcomes: SimpleQueue[Array | BaseException] = SimpleQueue()
        self.pending = 0
        self.is_hedged = False
        self.failures: list[BoxUnavailable] = []

    def won_from(self, replica: Replica) -> Array:
        """The first response; the request starts at this replica."""
        self._start(lambda: self.pooled.send(replica, self.images))
        patience = self.pooled.hedges.patience()
        while self.pending:
            try:
                outcome = self.outcomes.get(timeout=patience)
            except Empty:
                patience = None
                self._hedge(replica)
                continue
            self.pending -= 1
            if isinstance(outcome, BoxUnavailable):
                self.failures.append(outcome)
                patience = None
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._settle()
                return outcome
        self._settle()
        self.failures[-1].sent = any(failure.sent for failure in self.failures)
        raise self.failures[-1]

    def _hedge(self, first: Replica) -> None:
        """Send the request to another replica, if there is one and the limits allow it."""
        pooled = self.pooled
        ledger = pooled.ledger
        queries = len(self.images)
        if not pooled.hedges.take() or not pooled.limiter.enter_at_once(queries):
            return
        other = pooled.replicas.take([first], ready=True)
        if other is None or (ledger is not None and not ledger.hedge(queries)):
            if other is not None:
                pooled.replicas.released(other)
            pooled.limiter.leave()
            return
        self.is_hedged = True

        def send() -> Array:
            try:
                return pooled.send(other, self.images)
            finally:
                pooled.limiter.leave()

        self._start(send)

    def _start(self, send: Callable[[], Array]) -> None:
        """Send in a thread of its own: the loser of a race is not waited for."""

        def attempt() -> None:
            try:
                self.outcomes.put(send())
            except BaseException as error:
                self.outcomes.put(error)

        self.pending += 1
        threading.Thread(target=attempt, daemon=True).start()

    def _settle(self) -> None:
        """Of a hedged request, one that never left is not counted."""
        ledger = self.pooled.ledger
        unsent = any(not failure.sent for failure in self.failures)
        if self.is_hedged and unsent and ledger is not None:
            ledger.unhedge(len(self.images))

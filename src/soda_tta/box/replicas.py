"""The replicas of one model: how busy and how fast each server is, and which of them are set aside.

A replica that fails is set aside and probed again, by its description and not by images, so that a
probe is not billed. The pauses between probes grow while it keeps failing.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Sequence

from soda_tta.box.box import Box
from soda_tta.errors import BoxError, BoxUnavailable

FIRST_PAUSE = 0.5  # seconds before a replica that failed is probed; doubles while it keeps failing
LONGEST_PAUSE = 60.0
SMOOTHING = 0.3  # weight of the last response in the seconds that a request takes
SLOW = 3.0  # times as slow as the fastest: below, replicas count as equally fast
FORGET = 10.0  # seconds after which a slow replica gets another chance
LOOKUP = 30.0  # seconds between two lookups of a name


class Replica:
    """One server.

    Parameters
    ----------
    name : its address, for people.
    open : connects to it and reads what it declares; raises BoxError.
    box : the connection; None if it did not respond yet.
    """

    def __init__(self, name: str, open: Callable[[], Box], box: Box | None = None) -> None:
        self.name = name
        self.open = open
        self.box = box
        self.outstanding = 0
        self.turn = 0  # number of the last request it got
        self.seconds: float | None = None  # that a request takes, without those before it
        self.measured = -math.inf  # when the last response came
        self.pause = FIRST_PAUSE
        self.aside_until: float | None = None
        self.returned = -math.inf  # when it was last taken back
        self.on_trial = False  # one request at a time, until a response has come
        self.is_probed = False

    @property
    def is_ready(self) -> bool:
        """Whether it may get a request now."""
        is_busy_on_trial = self.on_trial and self.outstanding > 0
        return self.box is not None and self.aside_until is None and not is_busy_on_trial


class Replicas:
    """Chooses a replica for each request: the one with the fewest outstanding requests.

    A replica that is several times as slow as the fastest counts as that much busier. Ties go to
    the one that was idle for longest.

    Parameters
    ----------
    replicas : at least one of them with a box.
    difference : what makes a box another model than the pool's, as a text; None if nothing does.
    lookup : the replicas whose names are not among those it gets; called now and then.
    clock : seconds that never go back.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        difference: Callable[[Box], str | None] = lambda box: None,
        lookup: Callable[[Collection[str]], list[Replica]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.all = list(replicas)
        self.difference = difference
        self.lookup = lookup
        self.clock = clock
        self.next_lookup = clock() + LOOKUP
        self.turn = 0
        self.lock = threading.Lock()
        for replica in self.all:
            if replica.box is None:
                replica.aside_until = clock() + replica.pause

    @property
    def box(self) -> Box:
        """A box that stands for all."""
        return next(replica.box for replica in self.all if replica.box is not None)

    def take(self, without: Collection[Replica] = (), *, ready: bool = False) -> Replica | None:
        """The replica for the next request, which is outstanding from now on.

        Parameters
        ----------
        without : replicas that were tried already.
        ready : only one that is not set aside. Otherwise, if all are, the one to be probed first.
        """
        with self.lock:
            self._look_after()
            others = [each for each in self.all if each not in without]
            usable = [each for each in others if each.is_ready]
            if usable:
                fastest = min((each.seconds or math.inf for each in usable), default=math.inf)
                chosen = min(usable, key=lambda each: self._cost(each, fastest))
            elif others and not ready:
                chosen = min(others, key=lambda each: each.aside_until or 0)
            else:
                return None
            self.turn += 1
            chosen.turn = self.turn
            chosen.outstanding += 1
            return chosen

    def _cost(self, replica: Replica, fastest: float) -> tuple[float, int]:
        """How busy a replica will be with one request more."""
        ratio = (replica.seconds or 0) / fastest
        if ratio > SLOW and self.clock() - replica.measured > FORGET:
            replica.on_trial = True
            ratio = 1
        return (replica.outstanding + 1) * (ratio if ratio > SLOW else 1), replica.turn

    def succeeded(self, replica: Replica, seconds: float, outstanding: int = 1) -> None:
        """A response has come after so many seconds.

        So many requests were outstanding when it was sent: it had to wait for them.
        """
        seconds = seconds / outstanding
        with self.lock:
            replica.outstanding -= 1
            before = seconds if replica.seconds is None or replica.on_trial else replica.seconds
            replica.seconds = before + SMOOTHING * (seconds - before)
            replica.measured = self.clock()
            replica.on_trial = False
            if replica.aside_until is not None:  # all were, so it was asked all the same
                self._take_back(replica)

    def failed(self, replica: Replica, error: BoxUnavailable) -> None:
        """A request got no response: set the replica aside."""
        with self.lock:
            replica.outstanding -= 1
            if replica.aside_until is not None:
                return  # another request has noticed
            now = self.clock()
            soon = now - replica.returned < 2 * replica.pause
            replica.pause = min(LONGEST_PAUSE, 2 * replica.pause) if soon else FIRST_PAUSE
            wanted = min(LONGEST_PAUSE, error.retry_after or 0)
            replica.aside_until = now + max(replica.pause, wanted)

    def released(self, replica: Replica) -> None:
        """A request ended in a way that does not speak for or against its replica."""
        with self.lock:
            replica.outstanding -= 1

    def has_ready(self, without: Collection[Replica] = ()) -> bool:
        """Whether a replica that is not set aside is left."""
        with self.lock:
            return any(each.is_ready for each in self.all if each not in without)

    def _take_back(self, replica: Replica) -> None:
        replica.aside_until = None
        replica.returned = self.clock()

    def _look_after(self) -> None:
        """Probe the replicas whose pause is over, and look for new ones, in the background."""
        now = self.clock()
        for replica in self.all:
            is_due = replica.aside_until is not None and now >= replica.aside_until
            if is_due and not replica.is_probed:
                replica.is_probed = True
                threading.Thread(target=self.probe, args=(replica,), daemon=True).start()
        if self.lookup is not None and now >= self.next_lookup:
            self.next_lookup = now + LOOKUP
            threading.Thread(target=self.look_up, daemon=True).start()

    def probe(self, replica: Replica) -> None:
        """Take a replica back if it describes the same model again."""
        box: Box | None = None
        try:
            box = replica.open()
            if self.difference(box) is not None:
                box = None  # it came back with another model
        except BoxError:
            pass
        with self.lock:
            replica.is_probed = False
            if box is None:
                replica.pause = min(LONGEST_PAUSE, 2 * replica.pause)
                replica.aside_until = self.clock() + replica.pause
                return
            replica.box = box
            replica.on_trial = True
            self._take_back(replica)

    def look_up(self) -> None:
        """Add the replicas that are new under the name; they are probed before their first use."""
        assert self.lookup is not None
        try:
            new = self.lookup({replica.name for replica in self.all})
        except BoxError:
            return  # the next lookup may succeed
        with self.lock:
            for replica in new:
                replica.aside_until = self.clock()
            self.all += new

"""One condition of live traffic: its adaptor, the search for a better one, the gate, the watch."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor, Bank, BankAdaptor, Identity
from soda_tta.adaptors.parts import PARTS
from soda_tta.engine.live_buffer import Item
from soda_tta.engine.live_search import LiveSearch
from soda_tta.judging.gate import Gate, Watch
from soda_tta.storage.named_arrays import Arrays, as_array, below, from_array, part_of
from soda_tta.types import Array

REST = 1000  # images of the condition between two searches; doubled after each in vain
LONGEST_REST = 16_000
WATCHED = 16  # one in so many images of the condition is watched after a promotion ...
SUSPICIOUS = 4  # ... and one in so many if the adaptor seems to have stopped winning ...
CLOSELY = 32  # ... and for so many images at first
LATE = 8  # watched images that may be due at the same time
TEST_EVERY = 3  # rounds of search between two candidates
WATCH_LEVEL = 1e-3  # a rollback for no reason after at least 1,000 watched images on average
COUNTS = ("adaptor", "arrived", "last", "claim", "rest", "resting_until", "watched_at")
TEST = ("number", "tested")


class Condition:
    """What is known about the images of one condition, and what is being tried on them.

    Parameters
    ----------
    bank : the structure of the adaptors.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.words = ""
        self.theta = np.zeros(len(PARTS))  # the current adaptor; 0 leaves the images as they are
        self.adaptor = 0  # number of the current adaptor; 0 is none
        self.arrived = 0  # images of this condition
        self.last = 0  # when the last of them arrived, in images of the stream
        self.claim = 0.0  # images whose allowance this condition has not spent yet
        self.search: LiveSearch | None = None
        self.gate: Gate | None = None
        self.candidate = self.theta  # under test
        self.number = 0  # of the candidate, in the life of the stream
        self.tested = 0  # rounds of the search when a candidate was last taken from it
        self.watch: Watch | None = None
        self.watched_at = 0  # in images of this condition
        self.rest = REST
        self.resting_until = 0  # in images of this condition

    def inherited(self, images: int) -> Condition:
        """A part of this condition with so many images: the same adaptor, nothing else."""
        part = Condition(self.bank)
        part.theta = self.theta
        part.adaptor = self.adaptor
        part.arrived = images
        part.last = self.last
        if self.theta.any():
            part.watch = Watch(WATCH_LEVEL)
            part.watched_at = images
        return part

    def built(self, theta: Array) -> BankAdaptor:
        """The bank with these parameters."""
        return BankAdaptor(structure=self.bank, parameters=theta.astype(np.float32))

    @property
    def current(self) -> Adaptor:
        """The current adaptor."""
        return self.built(self.theta) if self.theta.any() else Identity()

    # -- what happens ----------------------------------------------------------------------------

    def begin(self, search: LiveSearch) -> None:
        """Begin a search."""
        self.search = search
        self.tested = 0

    @property
    def has_candidate(self) -> bool:
        """Whether the search has found something that should be tested now.

        The first move is tested at once: after a shift it is most of the gain. Every further
        candidate is a smaller gain that needs more evidence, and a smaller share of the level.
        """
        search = self.search
        if search is None or self.gate is not None or search.rounds <= self.tested:
            return False
        tested_before = (self.theta, self.candidate)
        if any(np.array_equal(search.theta, theta) for theta in tested_before):
            return False
        return search.rounds >= self.tested + TEST_EVERY or not self.tested or search.ended

    def test(self, number: int, level: float) -> None:
        """Begin to test what the search has found so far."""
        assert self.search is not None
        self.candidate = self.search.theta
        self.number = number
        self.gate = Gate(level)
        self.tested = self.search.rounds

    def promote(self) -> None:
        """The candidate becomes the current adaptor."""
        self.theta = self.candidate
        self.adaptor = self.number
        self.gate = None
        self.watch = Watch(WATCH_LEVEL)
        self.watched_at = self.arrived
        self.rest = REST

    def reject(self) -> None:
        """The candidate is given up, and with it the search that led there."""
        self.gate = None
        self.end_search()

    def roll_back(self) -> None:
        """Leave the images as they are, and search again after a rest."""
        self.theta = np.zeros(len(PARTS))
        self.adaptor = 0
        self.watch = None
        self.gate = None
        self.end_search()

    def end_search(self) -> None:
        """Rest before the next search."""
        self.search = None
        self.tested = 0
        self.resting_until = self.arrived + self.rest
        self.rest = min(2 * self.rest, LONGEST_REST)

    # -- what to do next -------------------------------------------------------------------------

    @property
    def rested(self) -> bool:
        """Whether a search may begin."""
        return self.search is None and self.gate is None and self.arrived >= self.resting_until

    @property
    def watch_is_due(self) -> bool:
        """Whether the next image is to be watched."""
        return self.watch is not None and self.arrived - self.watched_at >= self._every

    @property
    def _every(self) -> int:
        watch = self.watch
        closely = watch is not None and (watch.images < CLOSELY or watch.suspicious)
        return SUSPICIOUS if closely else WATCHED

    def note_watched(self) -> None:
        """An image was watched; of a large request several are."""
        every = self._every
        self.watched_at = max(self.watched_at + every, self.arrived - LATE * every)

    @property
    def doing(self) -> str:
        """What is being done, in a word."""
        if self.gate is not None:
            return "testing a candidate"
        if self.search is not None:
            return "searching"
        return "watching" if self.watch is not None else "resting"

    def knows_answer(self, item: Item) -> bool:
        """Whether the answer to an image was given through the current adaptor."""
        return item.adaptor == self.adaptor

    def facts(self) -> dict[str, Any]:
        """The condition as plain JSON; the learner may be at work meanwhile."""
        gate = self.gate
        watch = self.watch
        facts: dict[str, Any] = {
            "words": self.words,
            "images": self.arrived,
            "last": self.last,
            "adaptor": self.current.describe(),
            "parameters": self.theta.tolist(),
            "doing": self.doing,
        }
        if gate is not None:
            facts["test"] = {
                "candidate": self.number,
                "adaptor": self.built(self.candidate).describe(),
                "images": gate.images,
                "gain": gate.gain,
                "p_value": gate.capital.p_value,
                "level": gate.level,
            }
        if watch is not None:
            facts["watch"] = {"images": watch.images, "gain": watch.recent}
        return facts

    def state(self) -> Arrays:
        """Everything that is needed to continue, by name."""
        facts = {name: getattr(self, name) for name in (*COUNTS, *TEST, "words")}
        arrays = {"facts": as_array(facts), "theta": self.theta, "candidate": self.candidate}
        for name in ("search", "gate", "watch"):
            part = getattr(self, name)
            if part is not None:
                arrays |= below(f"{name}.", part.state())
        return arrays

    def restore(self, state: Arrays, method: Any) -> None:
        """Continue from a state."""
        for name, value in from_array(state["facts"]).items():
            if name in (*COUNTS, *TEST, "words"):
                setattr(self, name, value)
        self.theta = state["theta"]
        self.candidate = state["candidate"]
        if part := part_of(state, "search."):
            self.search = LiveSearch.restored(method, self.built(self.theta), part)
        if part := part_of(state, "gate."):
            self.gate = Gate(1.0)
            self.gate.restore(part)
        if part := part_of(state, "watch."):
            self.watch = Watch(1.0)
            self.watch.restore(part)

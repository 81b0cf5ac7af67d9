"""One source of live images: its buffer, its router and its shelf of adaptors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Bank, RoutedAdaptor
from soda_tta.conditions.find import assembled, fitted_router
from soda_tta.conditions.growing import grown, with_equal_weights
from soda_tta.conditions.router import Router
from soda_tta.conditions.words import describe, spread
from soda_tta.data.near_copies import NearCopies
from soda_tta.engine.live_answers import LiveAnswers
from soda_tta.engine.live_buffer import Buffer, Item
from soda_tta.engine.live_condition import Condition
from soda_tta.engine.live_search import IMAGES
from soda_tta.storage.named_arrays import Arrays, as_array, below, from_array, part_of
from soda_tta.types import Array

FIRST_ROUTER = 512  # images from which the first router is made
SECOND_ROUTER = 4000  # images from which the router is made again: more tell more apart
RECENT = 192  # latest images that may need a condition of their own
GROWTH_EVERY = 32  # images between two looks at that
DOUBTS = RECENT // GROWTH_EVERY  # looks until new images are taken for an old condition
MOST_CONDITIONS = 8
REMEMBERED = 512  # images that near copies are recognised of
FORGOTTEN = 0.99  # per image: what arrives now is learned from first
NOWHERE = -1  # condition of images before there is a router, and of unfamiliar ones


class Source:
    """What is known about the images with one key.

    Parameters
    ----------
    number : of the source, in the order in which sources appeared.
    buffer : the most images to keep.
    seed : everything random follows from it.
    """

    def __init__(self, number: int, buffer: int, seed: int) -> None:
        self.number = number
        self.seed = seed
        self.buffer = Buffer(buffer)
        self.rows: list[Array] = []  # statistics of the first images, until there is no need
        self.latest = NearCopies(REMEMBERED)
        self.router: Router | None = None
        self.conditions: list[Condition] = []
        self.shelf: RoutedAdaptor | None = None  # what answers; None leaves all images as they are
        self.version = 0  # of the shelf
        self.arrived = 0
        self.last = 0  # when the last image arrived, in images of the stream
        self.looked_at = 0  # when the recent images were last looked at, in images of the source
        self.doubts = 0  # looks in a row at new images that seem to be of an old condition
        self.drawn = 0  # random draws so far
        self.answers = LiveAnswers()

    # -- arrival ---------------------------------------------------------------------------------

    def add(self, item: Item, familiar: bool) -> None:
        """An image that arrived; `item.condition` is its most likely condition."""
        self.arrived += 1
        self.last = item.number
        if self.arrived <= SECOND_ROUTER:
            self.rows.append(item.statistics)
        if item.condition != NOWHERE:
            condition = self.conditions[item.condition]
            condition.arrived += 1
            condition.last = item.number
            for each in self.conditions:
                each.claim *= FORGOTTEN
            condition.claim += 1
        if not familiar:
            item.condition = NOWHERE
        self.buffer.add(item)

    def conditions_of(self, statistics: Array) -> tuple[Array, Array]:
        """The condition of each image, and whether it is familiar."""
        if self.router is None:
            return np.full(len(statistics), NOWHERE), np.zeros(len(statistics), bool)
        routes = self.router.of_statistics(statistics)
        return routes.conditions, routes.familiar

    # -- conditions ------------------------------------------------------------------------------

    def look_at_recent(self) -> list[int]:
        """Make the first router, or let it grow; return the numbers of new conditions."""
        if self.router is None:
            first = max(IMAGES, min(FIRST_ROUTER, self.buffer.room))
            return self._begin() if len(self.buffer) >= first else []
        if len(self.rows) == SECOND_ROUTER:
            return self._look_again()
        recent = min(RECENT, self.buffer.room // 2)  # large images: fewer of them are kept
        if self.arrived - self.looked_at < GROWTH_EVERY or len(self.buffer) < 2 * recent:
            return []
        self.looked_at = self.arrived
        rows = self.buffer.statistics()
        growth = grown(self.router, rows[-recent:], rows[:-recent])
        before = len(self.router)
        if growth is None or growth.condition == before:
            self.doubts = 0
        else:  # the first images after a shift may be too few to tell that they are new
            self.doubts += 1
        if growth is None or 0 < self.doubts < DOUBTS:
            return []
        self.doubts = 0
        self.router = growth.router
        if growth.condition == before:
            self.conditions.append(self._new_condition())
            self._route_again(named=True)
            return [before]
        self._route_again()
        condition = self.conditions[growth.condition]
        condition.resting_until = min(condition.resting_until, condition.arrived)
        return []

    def _begin(self) -> list[int]:
        rows = self.buffer.statistics()
        found = assembled(rows, fitted_router(rows, "auto", self.seed))
        self.router = with_equal_weights(found.router)
        self.conditions = [self._new_condition() for _ in range(len(found))]
        self.looked_at = self.arrived
        self._route_again(named=True)
        for number, condition in enumerate(self.conditions):
            condition.arrived = sum(item.condition == number for item in self.buffer.items)
        return list(range(len(found)))

    def _look_again(self) -> list[int]:
        """Make the router again if that tells more conditions apart, where adaptors answer.

        A condition that was really two has one adaptor, which may harm one of them. Each part
        inherits it and is watched by itself.
        """
        assert self.router is not None
        rows = np.array(self.rows)
        self.rows = []
        if self.shelf is None:
            return []
        found = assembled(rows, fitted_router(rows, "auto", self.seed))
        if not len(self.router) < len(found) <= MOST_CONDITIONS:
            return []
        before = self.router.of_statistics(rows).conditions
        parts = []
        for number in range(len(found)):
            own = before[found.of_each == number]
            parts.append(self.conditions[np.bincount(own).argmax()].inherited(len(own)))
        self.router = with_equal_weights(found.router)
        self.conditions = parts
        self._route_again(named=True)
        return list(range(len(found)))

    def _new_condition(self) -> Condition:
        size = self.buffer.items[-1].image.shape
        condition = Condition(Bank.for_size(size))
        condition.last = self.last
        return condition

    def _route_again(self, *, named: bool = False) -> None:
        """The conditions of all images of the buffer, by a router that has changed.

        Parameters
        ----------
        named : also find words for them: the buffer has images of a new one and of others.
        """
        assert self.router is not None
        rows = self.buffer.statistics()
        routes = self.router.of_statistics(rows)
        numbers = np.where(routes.familiar, routes.conditions, NOWHERE)
        for item, number in zip(self.buffer.items, numbers.tolist(), strict=True):
            item.condition = number
        if named:
            self._name(rows, routes.conditions)
        self.renew_shelf()

    def _name(self, rows: Array, conditions: Array) -> None:
        """Words for the conditions, by the statistics of the buffer."""
        standard = (rows - rows.mean(axis=0)) / spread(rows)
        for number, condition in enumerate(self.conditions):
            own = conditions == number
            if own.any():  # a condition that is not in the buffer keeps its words
                condition.words = describe(standard[own].mean(axis=0)[None])[0]

    def drop_oldest(self) -> Condition | None:
        """Forget the condition that was not seen for the longest time, if there are too many."""
        if self.router is None or len(self.conditions) <= MOST_CONDITIONS:
            return None
        oldest = min(self.conditions, key=lambda condition: condition.last)
        number = self.conditions.index(oldest)
        kept = [each for each in range(len(self.conditions)) if each != number]
        self.router = with_equal_weights(self.router.only(np.array(kept)))
        del self.conditions[number]
        self._route_again()
        return oldest

    def current_answers(self) -> Array:
        """The responses in the buffer that the current adaptors gave."""
        current = [0 if self.shelf is None else each.adaptor for each in self.conditions]
        current.append(0)  # of images that belong NOWHERE
        return np.array(
            [item.answer for item in self.buffer.items if item.adaptor == current[item.condition]]
        )

    def renew_shelf(self) -> None:
        """Put the current adaptors on the shelf that answers."""
        self.version += 1
        self.shelf = None
        if self.router is None or not any(each.theta.any() for each in self.conditions):
            return
        total = max(1, sum(condition.arrived for condition in self.conditions))
        self.shelf = RoutedAdaptor(
            router=self.router,
            adaptors=[condition.current for condition in self.conditions],
            words=[condition.words for condition in self.conditions],
            shares=[condition.arrived / total for condition in self.conditions],
        )

    # -- on disk ---------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """The source as plain JSON."""
        return {
            "images": self.arrived,
            "last": self.last,
            "buffer": len(self.buffer),
            "conditions": [condition.facts() for condition in list(self.conditions)],
            "answers": self.answers.answering.describe(),
        }

    def state(self) -> Arrays:
        """Everything that is needed to continue, by name."""
        names = ("number", "seed", "version", "arrived", "last", "looked_at", "drawn", "doubts")
        facts = {name: getattr(self, name) for name in names}
        facts["most"] = self.buffer.most
        facts["conditions"] = [condition.bank.grain for condition in self.conditions]
        arrays = below("buffer.", self.buffer.state()) | below("latest.", self.latest.state())
        arrays |= below("answers.", self.answers.state())
        if self.rows:
            arrays["rows"] = np.array(self.rows)
        if self.router is not None:
            facts["router"] = self.router.settings
        for number, condition in enumerate(self.conditions):
            arrays |= below(f"condition.{number}.", condition.state())
        return {**arrays, "facts": as_array(facts)}

    @staticmethod
    def restored(state: Arrays, method: Any) -> Source:
        """The source with a state."""
        facts = from_array(state["facts"])
        source = Source(facts["number"], facts["most"], facts["seed"])
        source.buffer.restore(part_of(state, "buffer."))
        source.rows = list(state.get("rows", []))
        source.latest.restore(part_of(state, "latest."))
        source.answers.restore(part_of(state, "answers."))
        for number, grain in enumerate(facts["conditions"]):
            condition = Condition(Bank(grain=grain))
            condition.restore(part_of(state, f"condition.{number}."), method)
            source.conditions.append(condition)
        if "router" in facts:
            source.router = replace(Router.from_settings(facts["router"]))
            source.renew_shelf()
        for name in ("version", "arrived", "last", "looked_at", "drawn", "doubts"):
            setattr(source, name, facts[name])
        return source

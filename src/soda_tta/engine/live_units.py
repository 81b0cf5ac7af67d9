"""The units of learning of a live stream: watch, test and search, each with a few queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.box import Meter
from soda_tta.engine.live_buffer import Item
from soda_tta.engine.live_condition import Condition
from soda_tta.engine.live_events import (
    LiveEvent,
    Promoted,
    Rejected,
    RolledBack,
    SearchStarted,
)
from soda_tta.engine.live_pixels import as_floats
from soda_tta.engine.live_search import BATCH, IMAGES, LiveSearch
from soda_tta.engine.live_source import Source
from soda_tta.judging.sequential import level_of
from soda_tta.judging.verdict import moved
from soda_tta.randomness import RandomStream, generator
from soda_tta.types import Array
from soda_tta.wording import counted

ASKED = 128  # queries per unit, about
TESTED = 8  # images per unit of a test
VIEWS = 4  # queries per image of a test or watch, at most
MOST_EVIDENCE = 1000  # images after which a candidate that did not win is given up
MOST_CLAIM = 256  # images that a condition may have spent in advance
FEWEST_SHOWN = 32  # images of other scenes without which nothing is searched

Report = Callable[[LiveEvent], None]


@dataclass
class Life:
    """What all sources of a stream share.

    Parameters
    ----------
    method : soda-e with its settings.
    meter : the metered model.
    level : accepted rate of false promotions over the whole life.
    learn_budget : queries per arrived image.
    allowance : queries that may be spent now.
    arrived : images so far.
    candidates : candidates tested so far; each gets a smaller share of the level.
    """

    method: Any
    meter: Meter
    level: float
    learn_budget: float
    allowance: float = 0.0
    arrived: int = 0
    candidates: int = 0

    def afford(self, queries: int) -> bool:
        """Whether so many queries may be spent now."""
        return self.allowance >= queries

    def asking(self, purpose: Any) -> Callable[[Array], Array]:
        """The model; its queries are taken from the allowance."""
        box = self.meter.asking(purpose)

        def ask(images: Array) -> Array:
            self.allowance -= len(images)  # they may be billed even if they fail
            return np.asarray(box(images))

        return ask


class Units:
    """One source's units of learning.

    Parameters
    ----------
    life : what all sources share.
    key, source : the source.
    report : receives every event.
    """

    def __init__(self, life: Life, key: str | None, source: Source, report: Report) -> None:
        self.life = life
        self.key = key
        self.source = source
        self.report = report
        self.saving = False  # the unit that is due costs more than may be spent now

    def run_one(self) -> bool:
        """Do the next unit; False if there is nothing to do or not enough allowance."""
        if any(self._watch(condition) for condition in self.source.conditions):
            return True  # what answers now comes before what may answer later
        for condition in self._in_order():
            before = self.life.allowance
            self.saving = False
            if self._test(condition) or self._search(condition):
                spent = before - self.life.allowance
                condition.claim = max(condition.claim - spent / self.life.learn_budget, -MOST_CLAIM)
                return True
            if self.saving:
                return False  # others must not spend what this condition waits for
        return False

    def _affords(self, queries: int) -> bool:
        """Whether so many queries may be spent now; if not, they are saved for."""
        self.saving = not self.life.afford(queries)
        return not self.saving

    def _in_order(self) -> Iterator[Condition]:
        """Conditions whose images paid for learning and got little of it come first."""
        yield from sorted(self.source.conditions, key=lambda condition: -condition.claim)

    def _number(self, condition: Condition) -> int:
        return self.source.conditions.index(condition)

    def _fresh(self, condition: Condition) -> list[Item]:
        return self.source.buffer.fresh(self._number(condition))

    def _facts(self, condition: Condition) -> dict[str, Any]:
        return {
            "key": self.key,
            "arrived": self.life.arrived,
            "condition": self._number(condition),
        }

    # -- watch -----------------------------------------------------------------------------------

    def _watch(self, condition: Condition) -> bool:
        fresh = self._fresh(condition)
        if not (condition.watch_is_due and fresh and self.life.afford(VIEWS)):
            return False
        condition.note_watched()
        item = fresh[-1]
        item.used = True
        if not self.source.latest.is_new(item.pixels):
            return True
        images = item.pixels[None]
        adapted = condition.built(condition.theta)(images)
        views = [moved(adapted), images, moved(images)]
        unknown = not condition.knows_answer(item)
        rows = self.life.asking("watch")(np.concatenate([*views, adapted] if unknown else views))
        answer = rows[3] if unknown else item.answer
        assert condition.watch is not None
        condition.watch.add(unadapted=rows[1:3], adapted=np.stack([answer, rows[0]]))
        if condition.watch.failed:
            self.roll_back(condition, condition.watch.reason)
        return True

    def roll_back(self, condition: Condition, reason: str) -> None:
        """Leave the images of a condition as they are again."""
        self.report(
            RolledBack(
                **self._facts(condition),
                adaptor=condition.current.describe(),
                images=0 if condition.watch is None else condition.watch.images,
                reason=reason,
            )
        )
        condition.roll_back()
        self.source.renew_shelf()

    # -- test ------------------------------------------------------------------------------------

    def _test(self, condition: Condition) -> bool:
        if condition.has_candidate:
            self.life.candidates += 1
            number = self.life.candidates
            condition.test(number, level_of(number, self.life.level))
        if condition.gate is None:
            return False
        affordable = int(self.life.allowance) // VIEWS
        chosen = self._drawn(self._fresh(condition), min(TESTED, affordable))
        if not chosen:
            return False
        for item in chosen:
            item.used = True
        new = [item for item in chosen if self.source.latest.is_new(item.pixels)]
        if new:
            self._add_evidence(condition, new)
        self._decide(condition)
        return True

    def _drawn(self, items: list[Item], count: int) -> list[Item]:
        """Some of the images, at random: every client of the buffer has its share."""
        if not items or not count:
            return []
        random = generator(
            self.source.seed, RandomStream.LIVE, self.source.number, self.source.drawn
        )
        self.source.drawn += 1
        places = random.permutation(len(items))[:count]
        return [items[place] for place in sorted(places.tolist())]

    def _add_evidence(self, condition: Condition, items: list[Item]) -> None:
        images = np.stack([item.pixels for item in items])
        current = condition.current(images)
        candidate = condition.built(condition.candidate)(images)
        stale = [place for place, item in enumerate(items) if not condition.knows_answer(item)]
        views = [moved(current), candidate, moved(candidate), current[stale]]
        rows = self.life.asking("judge")(np.concatenate(views))
        count = len(items)
        answers = np.array([item.answer for item in items])
        answers[stale] = rows[3 * count :]
        assert condition.gate is not None
        for place in range(count):
            condition.gate.add(
                current=np.stack([answers[place], rows[place]]),
                candidate=rows[[count + place, 2 * count + place]],
            )

    def _decide(self, condition: Condition) -> None:
        gate = condition.gate
        assert gate is not None
        facts = {
            **self._facts(condition),
            "candidate": condition.number,
            "adaptor": condition.built(condition.candidate).describe(),
            "images": gate.images,
            "gain": gate.gain,
            "p_value": gate.capital.p_value,
            "level": gate.level,
        }
        suspicious = condition.watch is not None and condition.watch.suspicious
        if gate.passed and not suspicious:  # to beat an adaptor that harms is not enough
            self.report(Promoted(**facts))
            condition.promote()
            self.source.renew_shelf()
        elif gate.hopeless:
            self.report(Rejected(**facts, reason="it is not better than the current adaptor"))
            condition.reject()
        elif gate.images >= MOST_EVIDENCE:
            reason = f"it is not clearly better after {gate.images} images"
            self.report(Rejected(**facts, reason=reason))
            condition.reject()

    # -- search ----------------------------------------------------------------------------------

    def _search(self, condition: Condition) -> bool:
        if condition.search is None:
            return condition.rested and self._begin(condition)
        search = condition.search
        cost = search.cost(ASKED)
        if not cost:
            if condition.gate is None and not condition.has_candidate:
                condition.end_search()
            return False
        if not self._affords(cost):
            return False
        search.step(self.life.asking("probe"), ASKED)
        return True

    def _begin(self, condition: Condition) -> bool:
        """Begin a search if there are enough recent images of different scenes."""
        fresh = self._fresh(condition)
        if len(fresh) < IMAGES or not self._affords(IMAGES):
            return False
        drawn = self._drawn(fresh, IMAGES)
        for item in drawn:
            item.used = True
        shown = [item for item in drawn if self.source.latest.is_new(item.pixels)]
        if len(shown) < FEWEST_SHOWN:
            condition.end_search()
            return False
        images = np.stack([item.image for item in shown])
        before = self._answers_as_they_are(shown, images)
        shelf = np.array(self._starts(condition)).reshape(-1, condition.theta.size)
        recipes = self.life.method.starts() if self.life.method.recipes else shelf[:0]
        starts = np.concatenate([shelf, recipes])
        seed = self.source.seed + self.source.drawn
        bank = condition.built(condition.theta)
        condition.begin(LiveSearch(self.life.method, bank, images, before, starts, seed))
        start = f"{counted(len(shelf), 'adaptor')} of the shelf" if len(shelf) else "no adaptor"
        self.report(SearchStarted(**self._facts(condition), start=start))
        return True

    def _answers_as_they_are(self, items: list[Item], images: Array) -> Array:
        answers = np.array([item.answer for item in items])
        changed = [place for place, item in enumerate(items) if item.adaptor != 0]
        if changed:
            answers[changed] = self.life.asking("probe")(as_floats(images[changed]))
        return answers

    def _starts(self, condition: Condition) -> list[Array]:
        """What helps under this condition already, and under the others."""
        others = [each for each in self.source.conditions if each is not condition]
        thetas: list[Array] = []
        for each in (condition, *others):
            if each.theta.any() and not any(np.array_equal(each.theta, one) for one in thetas):
                thetas.append(each.theta)
        return thetas


assert BATCH <= ASKED  # a question about one point fits into a unit

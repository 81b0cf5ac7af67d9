"""The learner of a live stream: what arrived, in its source, and one unit of learning at a time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from soda_tta.adaptors.quick import quick_statistics
from soda_tta.conditions.statistics import SMALLEST_SIDE
from soda_tta.engine.live_answers import CHECKED
from soda_tta.engine.live_arrivals import Arrival
from soda_tta.engine.live_buffer import UNKNOWN, Item
from soda_tta.engine.live_events import AnswersChanged, ConditionFound, Dropped, TooLarge
from soda_tta.engine.live_pixels import as_bytes
from soda_tta.engine.live_search import IMAGES
from soda_tta.engine.live_source import Source
from soda_tta.engine.live_units import Life, Report, Units
from soda_tta.engine.stated_prior import UNKNOWN as NOT_STATED


class Learner:
    """All sources of a stream. One thread at a time.

    Parameters
    ----------
    life : what all sources share.
    buffer : the most images that a source keeps.
    most : the most sources.
    seed : everything random follows from it.
    report : receives every event.
    """

    def __init__(
        self,
        life: Life,
        *,
        buffer: int,
        most: int,
        seed: int,
        report: Report,
    ) -> None:
        self.life = life
        self.buffer = buffer
        self.most = most
        self.seed = seed
        self.report = report
        self.sources: OrderedDict[str | None, Source] = OrderedDict()
        self.appeared = 0  # sources so far, dropped ones too

    def units(self, key: str | None) -> Units:
        """The units of one source."""
        return Units(self.life, key, self.sources[key], self.report)

    def learn(self) -> bool:
        """One unit for the source whose turn it is; False if none has anything to do."""
        for key in list(self.sources):
            if self._check_views(key) or self.units(key).run_one():
                self.sources.move_to_end(key)
                return True
        return False

    def _check_views(self, key: str | None) -> bool:
        """Compare further views once for each source, if they were asked for."""
        source = self.sources[key]
        items = source.buffer.items
        wanted = self.life.method.views
        needed = source.answers.needs_check(wanted, len(items))
        if not needed or not self.life.afford(3 * CHECKED):
            return False
        chosen = items[:: len(items) // CHECKED][:CHECKED]  # of every client
        texts = source.answers.check(wanted, chosen, source.shelf, self.life.asking("view"))
        self.report(
            AnswersChanged(
                key=key,
                arrived=self.life.arrived,
                answers=source.answers.answering.describe(),
                reason=" ".join(texts) or f"the model recognises them as well, on {CHECKED} images",
            )
        )
        return True

    def absorb(self, arrival: Arrival) -> None:
        """Take over images that arrived, with their allowance."""
        images = arrival.images
        if min(images.shape[2:]) < SMALLEST_SIDE:
            self.life.arrived += len(images)
            return
        source = self._source(arrival.key)
        is_new = not source.arrived
        rows = quick_statistics(images)
        conditions, familiar = source.conditions_of(rows)
        for place, image in enumerate(images):
            self.life.arrived += 1
            most = self.life.learn_budget * self.buffer
            self.life.allowance = min(self.life.allowance + self.life.learn_budget, most)
            item = Item(
                number=self.life.arrived,
                image=as_bytes(image),
                answer=arrival.answers[place],
                statistics=rows[place],
                condition=int(conditions[place]),
                adaptor=adaptor_of(source, arrival, conditions[place], familiar[place]),
                client=arrival.client,
            )
            if source.buffer.items and source.buffer.items[-1].image.shape != image.shape:
                continue  # a model that takes any size: the first size is learned from
            source.add(item, bool(familiar[place]))
        if is_new and source.buffer.room < IMAGES:
            self._report_too_large(arrival.key, images.shape[3], images.shape[2])
        self._look(arrival.key, source)
        self._renew(arrival.key, source)

    def _report_too_large(self, key: str | None, width: int, height: int) -> None:
        """Say once per source why nothing will be learned from it."""
        room = self.sources[key].buffer.room
        reason = (
            f"these images are too large to learn from: a search needs {IMAGES}, and the buffer "
            f"holds {room} of {width}x{height}; learn an adaptor from a folder of them with adapt()"
        )
        self.report(TooLarge(key=key, arrived=self.life.arrived, reason=reason))

    def _renew(self, key: str | None, source: Source) -> None:
        """Learn the class weights again, from the recent answers."""
        if self.life.method.prior == NOT_STATED or not source.answers.is_due(source.arrived):
            return
        rows = source.current_answers()
        prior = self.life.method.class_shares(rows.shape[1]) if len(rows) else None
        text = source.answers.renew(rows, prior, source.arrived)
        if text is not None:
            answers = source.answers.answering.describe()
            arrived = self.life.arrived
            self.report(AnswersChanged(key=key, arrived=arrived, answers=answers, reason=text))

    def _look(self, key: str | None, source: Source) -> None:
        """New conditions, and too many."""
        arrived = self.life.arrived
        for number in source.look_at_recent():
            words = source.conditions[number].words
            self.report(ConditionFound(key=key, arrived=arrived, condition=number, words=words))
        dropped = source.drop_oldest()
        if dropped is not None:
            reason = "it was not seen for the longest time, and there are too many conditions"
            self.report(Dropped(key=key, arrived=arrived, words=dropped.words, reason=reason))

    def _source(self, key: str | None) -> Source:
        """The source of this key; if there are too many, the one not seen longest makes room."""
        if key in self.sources:
            return self.sources[key]
        if len(self.sources) >= self.most:
            oldest = min(self.sources, key=lambda each: self.sources[each].last)
            del self.sources[oldest]
            reason = "it was not seen for the longest time, and there are too many sources"
            self.report(
                Dropped(key=oldest, arrived=self.life.arrived, words="source", reason=reason)
            )
        source = Source(self.appeared, self.buffer, self.seed)
        self.appeared += 1
        source.last = self.life.arrived
        self.sources[key] = source
        return source

    def facts(self) -> dict[str, Any]:
        """Everything that there is to see, as plain JSON."""
        return {
            "arrived": self.life.arrived,
            "allowance": self.life.allowance,
            "learn_budget": self.life.learn_budget,
            "level": self.life.level,
            "candidates": self.life.candidates,
            "sources": [{"key": key, **each.facts()} for key, each in list(self.sources.items())],
        }


def adaptor_of(source: Source, arrival: Arrival, condition: int, familiar: bool) -> int:
    """The number of the adaptor that an answer was given with."""
    if arrival.version != source.version:
        return 0 if arrival.version == 0 else UNKNOWN
    if source.shelf is None or not familiar:
        return 0
    return source.conditions[condition].adaptor

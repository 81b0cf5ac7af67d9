"""SODA-O (paper): images arrive in batches; the adaptor and a queue carry over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from soda_tta.engine.rounding import IMAGES_CHECKED, drowned_probes
from soda_tta.engine.stream import Stream
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.loop_method import EXCHANGEABLE, LoopMethod
from soda_tta.methods.method import Method, Outcome
from soda_tta.methods.soda import soda
from soda_tta.methods.tools import in_order
from soda_tta.objectives import Queue
from soda_tta.settings import ALIASES, convert, meanings_of, setting
from soda_tta.types import Array

OWN = ("arrival", "queue")  # settings that are not those of the inner method
REPLACED = ("rho", "aligned")  # the queue's share of each class replaces the selection


@dataclass(frozen=True, kw_only=True)
class Online(Method):
    """A loop method trained on each arriving batch and the queue, in mini-batches.

    Parameters
    ----------
    inner : the method that is trained; its `epochs` are per arriving batch.
    arrival, queue : see `soda-tta methods soda-o`.
    """

    elastic: ClassVar[bool] = True
    streams: ClassVar[bool] = True

    inner: LoopMethod
    arrival: int = setting(128, "images per arriving batch, where all images are at hand")
    queue: int = setting(1000, "confident images kept from earlier batches")

    def __post_init__(self) -> None:
        if self.inner.adaptor is None or self.inner.learning_rates:
            raise MethodError(
                f"{self.name} needs an adaptor and one learning rate: a stream cannot be repeated."
            )
        if not self.inner.search.follows_gradient:
            raise MethodError(
                f"{self.name} cannot use evolution: it converges on one set of images, and a "
                "stream brings others; use search=multi-point or per-image."
            )
        if self.arrival < 1 or self.epochs < 1:
            raise MethodError(f"{self.name} needs arrival >= 1 and epochs >= 1.")
        Queue(self.queue)  # refuses an impossible size

    @property
    def epochs(self) -> int:
        """Passes over each arriving batch and the queue."""
        return self.inner.epochs

    def but(self, **settings: Any) -> Online:
        """The same method with other settings: arrival, queue, and those of the inner method."""
        own: dict[str, Any] = {}
        for name in OWN:
            if name in settings:
                own[name] = convert(name, settings.pop(name), getattr(self, name))
        parts = {part: settings.pop(part) for part in (*EXCHANGEABLE, "step") if part in settings}
        changed = replace(self, inner=self.inner.but(**parts), **own)
        for name in settings:
            if ALIASES.get(name, name) not in changed.settings:
                raise changed.unknown_setting(name)
        return replace(changed, inner=changed.inner.but(**settings))

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting under the name that `but` takes."""
        own = {name: getattr(self, name) for name in OWN}
        inner = self.inner.settings
        return {**own, **{name: inner[name] for name in inner if name not in REPLACED}}

    @property
    def meanings(self) -> dict[str, str]:
        """One line of help for every setting."""
        texts = {**self.inner.meanings, **meanings_of(self)}
        texts["epochs"] = "passes over each arriving batch and the queue"
        return {name: texts.get(name, "") for name in self.settings}

    def queries(self, images: int) -> dict[str, int]:
        """At most: the queue holds no more than what has arrived, and often less."""
        trained = 0
        for place in in_order(images, self.arrival):
            trained += place.stop - place.start + min(self.queue, place.start)
        probe = trained * self.epochs * self.inner.search.candidates
        return {"probe": probe, "evaluate": images}

    def last_epoch(self, images: int) -> int:
        """The epochs of all batches together."""
        return self.epochs * -(-images // self.arrival)

    def notices(self, work: Work) -> list[str]:
        """Whether probes of the adaptor would drown in rounding."""
        assert self.inner.adaptor is not None
        adaptor = self.inner.adaptor.build(work.seed)
        images = work.images[slice(0, IMAGES_CHECKED)]
        box = work.meter.box
        problem = drowned_probes(self.inner.search, adaptor, images, box, work.seed)
        return [] if problem is None else [problem]

    def adapt(self, work: Work) -> Outcome:
        """Stream the images in their order."""
        return Outcome(self.answer(work), average=self.inner.average)

    def answer(self, work: Work) -> Array:
        """The probabilities of the stream."""
        count = len(work.images)
        limit = work.meter.limit
        budget = None if limit is None else limit / count
        stream = Stream(
            work.meter.box,
            method=self,
            seed=work.seed,
            budget=budget,
            meter=work.meter,
            listener=work.record,
        )
        rows = []
        for place in in_order(count, self.arrival):
            stream.prepaid = count - place.stop  # the first pass over what has not arrived yet
            rows.append(stream.answer(work.images[place], work.before[place]))
        return np.concatenate(rows)


soda_o = Online(
    name="soda-o",
    summary="SODA on a stream: each batch once, with a queue of the most confident images so far.",
    inner=soda.but(epochs=10).renamed("soda-o", "The paper's SODA for 10 epochs per batch."),
)

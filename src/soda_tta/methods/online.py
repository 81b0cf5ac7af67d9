"""SODA-O: images arrive in batches, once; the adaptor and a queue of the surest ones carry over (paper, SODA-O)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from soda_tta.engine.rounding import LOOKED_AT, drowned_probes
from soda_tta.errors import MethodError
from soda_tta.methods.loop_method import ALIASES, OTHERS, LoopMethod, convert
from soda_tta.methods.method import Method, Work, in_order
from soda_tta.methods.soda import soda
from soda_tta.objectives.queue import Queue
from soda_tta.search import Evolution
from soda_tta.types import Array

OWN = ("arrival", "queue")  # the settings that are not the recipe's
REPLACED = ("rho", "aligned")  # the queue's share of each class takes the place of the selection


@dataclass(frozen=True, kw_only=True)
class Online(Method):
    """A recipe trained for `epochs` on each arriving batch and the queue, in mini-batches of `batch`.

    `arrival` only matters where all images are at hand and are streamed in order; a `Stream` takes what comes.
    """

    elastic: ClassVar[bool] = True

    needs: str = "probabilities"
    recipe: LoopMethod
    arrival: int = 128
    queue: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recipe.adaptor is None or self.recipe.learning_rates:
            raise MethodError(
                f"{self.name} needs an adaptor and one learning rate: a stream cannot be run twice."
            )
        if isinstance(self.recipe.search, Evolution):
            raise MethodError(
                f"{self.name} cannot use evolution: it narrows down on one set of images, and a stream brings others; "
                "use search=multi-point or per-image."
            )
        if self.arrival < 1:
            raise MethodError(f"{self.name} needs batches of at least 1 image (arrival).")
        Queue(self.queue)  # refuses an impossible size

    def but(self, **settings: Any) -> Online:
        """The same with other settings: arrival, queue, and those of the recipe."""
        own = {
            name: convert(name, settings.pop(name), getattr(self, name))
            for name in OWN
            if name in settings
        }
        recipe = self.recipe.but(
            **{part: settings.pop(part) for part in (*OTHERS, "step") if part in settings}
        )
        known = [name for name in (*OWN, *recipe.settings) if name not in REPLACED]
        if absent := [name for name in settings if ALIASES.get(name, name) not in known]:
            raise MethodError(
                f"{self.name} has no number {absent[0]!r}; it has {', '.join(known)} (q is directions)."
            )
        recipe = recipe.but(**settings)
        return replace(self, recipe=recipe, epochs=recipe.epochs, batch=recipe.batch, **own)

    @property
    def settings(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in OWN}
        return {
            **own,
            **{name: value for name, value in self.recipe.settings.items() if name not in REPLACED},
        }

    def queries(self, images: int) -> dict[str, int]:
        """At most: the queue holds no more than what has arrived, and less if the model is rarely sure."""
        trained = sum(
            place.stop - place.start + min(self.queue, place.start)
            for place in in_order(images, self.arrival)
        )
        return {"probe": trained * self.epochs * self.recipe.search.candidates, "evaluate": images}

    def counted(self, images: int) -> int:
        return self.epochs * -(-images // self.arrival)

    def notices(self, given: Work) -> list[str]:
        assert self.recipe.adaptor is not None
        adaptor, images = self.recipe.adaptor.build(given.seed), given.images[slice(0, LOOKED_AT)]
        told = drowned_probes(self.recipe.search, adaptor, images, given.deployed, given.seed)
        return [told] if told else []

    def answer(self, given: Work) -> Array:
        from soda_tta.engine.stream import (
            Stream,
        )  # a stream knows this recipe; here it only lends its legs

        count, limit = len(given.images), given.ledger.limit
        stream = Stream(
            given.deployed,
            self,
            given.seed,
            None if limit is None else limit / count,
            listener=given.tell,
        )
        stream.ledger, stream.transcript = given.ledger, given.transcript
        answers = []
        for place in in_order(count, self.arrival):
            stream.prepaid = count - place.stop  # the first look at what has not arrived yet
            answers.append(stream.answer(given.images[place], given.before[place]))
        return np.concatenate(answers)


soda_o = Online(
    name="soda-o",
    summary="SODA on a stream: each batch once, with a queue of the surest images so far.",
    recipe=soda.but(epochs=10).renamed("soda-o", "The paper's SODA for 10 epochs a batch."),
    epochs=10,
    batch=256,
)

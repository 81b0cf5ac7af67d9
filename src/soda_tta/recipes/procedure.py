"""Methods with a mind of their own: they correct answers, adapt a copy of the model, or search in another way."""

from __future__ import annotations

import copy
from abc import ABC
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.box import Box, Ledger, ModuleBox, Transcript, asking
from soda_tta.data import Images
from soda_tta.errors import RecipeError
from soda_tta.events import Step
from soda_tta.recipes.recipe import ALIASES, convert
from soda_tta.verdict import Verdict

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Given:
    """What a procedure works on."""

    images: Images
    box: Box
    before: Array  # probabilities of every image as it is
    ledger: Ledger
    seed: int
    tell: Callable[[Step], None]
    transcript: Transcript | None = None  # answers that survive a kill

    def seen(self, place: slice | Array) -> Array:
        """Images as they reach the model, for methods that go past the box to a copy of its inside."""
        return self.box.seen(self.images[place])

    def asking(self, purpose: str) -> Box:
        """The box for one purpose: metered, and after a kill told again what was paid."""
        return asking(self.box, self.ledger, purpose, self.transcript)


@dataclass(frozen=True)
class Outcome:
    """What came of a procedure: answers, or an adaptor to answer with."""

    probabilities: Array | None  # None: answer every image through the adaptor
    adaptor: Adaptor = Identity()
    verdict: Verdict | None = None
    known: Array | None = None  # answers through the adaptor that are paid already; rows of NaN are not
    reason: str | None = None  # why it ended as it did


@dataclass(frozen=True, kw_only=True)
class Procedure(ABC):
    """A method with a mind of its own: `answer(given) -> probabilities`, its numbers as fields."""

    elastic: ClassVar[bool] = False  # does less when the budget is small, instead of refusing

    name: str
    summary: str
    needs: str
    epochs: int = 1
    batch: int = 200

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise RecipeError(f"{self.name} needs at least one epoch and a batch of at least 1.")

    def answer(self, given: Given) -> Array:
        """The probabilities to use, one row an image, in order. A procedure has this, or an `adapt` of its own."""
        raise NotImplementedError

    def adapt(self, given: Given) -> Outcome:
        """The same, for procedures that have more to tell than answers."""
        return Outcome(self.answer(given))

    def queries(self, images: int) -> dict[str, int]:
        """What it spends beyond the first look, by purpose."""
        return {}

    def within(self, images: int, limit: int | None) -> dict[str, int]:
        """The same under a limit of queries in all; more than that is shortened or refused."""
        return self.queries(images)

    def notices(self, given: Given) -> list[str]:
        """What is known to go wrong with these numbers, images and model, each with its remedy; asks nothing."""
        return []

    def outline(self, images: int, limit: int | None) -> str:
        """What it will do with so many queries, in words."""
        return self.summary

    def but(self, **numbers: Any) -> Procedure:
        """The same procedure with other numbers."""
        known = self.numbers()
        numbers = {ALIASES[name] if ALIASES.get(name) in known else name: value for name, value in numbers.items()}
        for name in numbers:
            if name not in known:
                raise RecipeError(f"{self.name} has no number {name!r}; it has {', '.join(known)}.")
        return replace(self, **{name: convert(name, value, known[name]) for name, value in numbers.items()})

    def numbers(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in ("name", "summary", "needs")}


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's own randomness (initial weights, dropout of a given module) from this seed, and restored afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        yield


def own_copy(box: Box) -> tuple[Any, ModuleBox]:
    """A copy of the model that may be changed, and a box around it. The deployed model is never touched."""
    module = copy.deepcopy(box.module)
    return module, ModuleBox(module, input=box.input, logits=box.logits)


def in_order(count: int, batch: int) -> Iterator[slice]:
    return (slice(start, min(start + batch, count)) for start in range(0, count, batch))

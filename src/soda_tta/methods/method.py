"""Methods with a mind of their own: they correct answers, adapt a copy of the model, or search in another way."""

from __future__ import annotations

import copy
import sys
import traceback
from abc import ABC
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.box import Box, Ledger, ModuleBox, Transcript, asking
from soda_tta.data import Images
from soda_tta.engine.events import Step
from soda_tta.errors import BudgetError, MethodError, SodaError
from soda_tta.judging.verdict import Verdict
from soda_tta.methods.loop_method import ALIASES, convert, renamed
from soda_tta.types import Array


@dataclass(frozen=True)
class Work:
    """What a procedure works on."""

    images: Images
    deployed: Box  # unmetered: for the wrappers below, and for what asks nothing
    before: Array  # probabilities of every image as it is
    ledger: Ledger
    seed: int
    tell: Callable[[Step], None]
    transcript: Transcript | None = None  # answers that survive a kill

    def seen(self, place: slice | Array) -> Array:
        """Images as they reach the model, for methods that go past the box to a copy of its inside."""
        return self.deployed.as_received(self.images[place])

    @property
    def box(self) -> Box:
        """The model, counted as "probe"."""
        return self.asking("probe")

    def asking(self, purpose: str) -> Box:
        """The model for one purpose: counted, within the budget, and after a kill told again what was paid."""
        return asking(self.deployed, self.ledger, purpose, self.transcript)


@dataclass(frozen=True)
class Outcome:
    """What came of a procedure: answers, or an adaptor to answer with."""

    probabilities: Array | None  # None: answer every image through the adaptor
    adaptor: Adaptor = Identity()
    verdict: Verdict | None = None
    known: Array | None = (
        None  # answers through the adaptor that are paid already; rows of NaN are not
    )
    reason: str | None = None  # why it ended as it did
    short: bool = False  # the budget ended it
    notices: tuple[str, ...] = ()  # what came up on the way that the user should know


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A method with a mind of its own: `answer(given) -> probabilities`, its settings as fields."""

    elastic: ClassVar[bool] = False  # does less when the budget is small, instead of refusing

    name: str
    summary: str
    needs: str
    epochs: int = 1
    batch: int = 200

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise MethodError(f"{self.name} needs at least one epoch and a batch of at least 1.")

    def answer(self, given: Work) -> Array:
        """The probabilities to use, one row an image, in order. A procedure has this, or an `adapt` of its own."""
        raise NotImplementedError

    def adapt(self, given: Work) -> Outcome:
        """The same, for procedures that have more to tell than answers."""
        return Outcome(self.answer(given))

    def queries(self, images: int) -> dict[str, int]:
        """What it spends beyond the first look, by purpose."""
        return {}

    def within(self, images: int, limit: int | None) -> dict[str, int]:
        """The same under a limit of queries in all; more than that is shortened or refused."""
        return self.queries(images)

    def notices(self, given: Work) -> list[str]:
        """What is known to go wrong with these settings, images and model, each with its remedy; asks nothing."""
        return []

    def idle(self) -> tuple[str, ...]:
        """Fields that make no difference to it: they are no settings of it."""
        return ()

    def counted(self, images: int) -> int:
        """The epoch of the last step it will tell of; 0 if that is not known beforehand."""
        return self.epochs

    def outline(self, images: int, limit: int | None) -> str:
        """What it will do with so many queries, in words."""
        return self.summary

    def but(self, **settings: Any) -> Method:
        """The same procedure with other settings."""
        known = self.settings
        if any(ALIASES.get(name) in known for name in settings):
            settings = renamed(settings)
        for name in settings:
            if name not in known:
                raise MethodError(f"{self.name} has no number {name!r}; it has {', '.join(known)}.")
        return replace(
            self, **{name: convert(name, value, known[name]) for name, value in settings.items()}
        )

    @property
    def settings(self) -> dict[str, Any]:
        hidden = ("name", "summary", "needs", *self.idle())
        return {name: value for name, value in asdict(self).items() if name not in hidden}


def outcome_of(recipe: Method, given: Work) -> Outcome:
    """What a procedure makes of what it is given; a mistake in one of the user's own is told as theirs."""
    try:
        outcome = recipe.adapt(given)
    except BudgetError:
        if not given.ledger.lost:
            raise
        reason = (
            "Requests that were lost have eaten up the budget; the model's own answers are kept."
        )
        return Outcome(given.before, reason=reason, short=True)
    except Exception as error:
        if isinstance(error, SodaError) or type(recipe).__module__.startswith("soda_tta."):
            raise
        trace = traceback.extract_tb(error.__traceback__)
        own = getattr(sys.modules.get(type(recipe).__module__), "__file__", None)
        place = next((each for each in reversed(trace) if each.filename == own), trace[-1])
        what = f"{type(error).__name__}: {error}".rstrip(": .")
        raise MethodError(
            f"{recipe.name} raised {what} ({place.filename}:{place.lineno})."
        ) from error
    if not isinstance(outcome, Outcome) or (
        outcome.probabilities is None and isinstance(outcome.adaptor, Identity)
    ):
        raise MethodError(
            f"{recipe.name} gave no answers; `answer` returns probabilities, `adapt` an Outcome."
        )
    if outcome.probabilities is None:
        return outcome
    try:
        rows = np.asarray(outcome.probabilities, np.float32)
    except (TypeError, ValueError) as error:
        raise MethodError(
            f"{recipe.name} answered with what is no array of settings: {error}"
        ) from error
    if rows.shape != given.before.shape:
        raise MethodError(
            f"{recipe.name} answered with an array of {rows.shape}; a row of {given.before.shape[1]} probabilities "
            f"for each of {len(given.before)} images is needed."
        )
    if not (np.isfinite(rows).all() and rows.min() >= 0):
        raise MethodError(
            f"{recipe.name} answered with NaN or negative settings; probabilities are needed."
        )
    return replace(outcome, probabilities=rows)


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

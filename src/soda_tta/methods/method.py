"""The one protocol of all methods."""

from __future__ import annotations

from abc import ABC
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.data import Images
from soda_tta.engine.plan import Plan
from soda_tta.engine.work import Work
from soda_tta.errors import BudgetError, MethodError
from soda_tta.judging.candidate import Candidate
from soda_tta.judging.condition_results import ConditionResults
from soda_tta.judging.verdict import Verdict
from soda_tta.settings import ALIASES, convert, meanings_of, without_aliases
from soda_tta.types import Array, Needs, Stopped

DESCRIPTION = ("name", "summary", "needs")  # fields that are not settings
Self = TypeVar("Self", bound="Method")


@dataclass(frozen=True)
class Outcome:
    """What came of a method: probabilities, or an adaptor to answer with.

    Parameters
    ----------
    probabilities : one row per image, in order; None answers every image through the adaptor.
    adaptor : what was learned; it leaves images as they are by default.
    verdict : whether to deploy the adaptor; None if the method gives no verdict.
    candidate : what was judged, adopted or not, with the responses that were paid for it.
    known : responses through the adaptor that were received already; rows of NaN were not.
    reason : why the method ended as it did, as a sentence; None for a standard one.
    stopped : why it ended: "finished", "budget" or "interrupted".
    average : answer with the mean of the probabilities before and after adapting.
    notices : what came up on the way that the user should know.
    facts : what belongs on the protocol card and is known only now.
    conditions : what came of each condition of mixed images; None if all images are alike.
    views : further views that each answer is the mean over (`adaptors/answering.py`), each with the
        responses to it that were received already; rows of NaN were not.
    prior : the share of each class, as stated; the answers are matched to it.
    """

    probabilities: Array | None = None
    adaptor: Adaptor = Identity()
    verdict: Verdict | None = None
    candidate: Candidate | None = None
    known: Array | None = None
    reason: str | None = None
    stopped: Stopped = "finished"
    average: bool = False
    notices: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    conditions: ConditionResults | None = None
    views: dict[str, Array] = field(default_factory=dict)
    prior: Array | None = None


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to adapt. Subclasses are frozen dataclasses; their fields are the settings.

    A subclass has at least a `name`, a `summary` and either `answer` (return probabilities) or
    `adapt` (return an Outcome). What it spends apart from the first pass, it states in `queries`.

    Parameters
    ----------
    name : how users choose it.
    summary : one line for `soda-tta methods`.
    needs : what it needs from the model: "probabilities", "gradients" or "weights".
    """

    elastic: ClassVar[bool] = False  # spends less when the budget is small, instead of refusing
    judges: ClassVar[bool] = False  # gives a verdict, and so can use `groups`
    learns_adaptor: ClassVar[bool] = False  # the engine answers with it, which may be left out
    streams: ClassVar[bool] = False  # can drive a Stream: it has an `inner` method and a `queue`

    name: str
    summary: str
    needs: Needs = "probabilities"

    @property
    def first_pass(self) -> bool:
        """Whether every image is sent as it is before the method begins.

        A method without a first pass sends what it needs itself. It states with `work.expect` how
        many classes there are, and enters answers to images as they are in `work.before`.
        """
        return True

    @property
    def stated_needs(self) -> str:
        """What it needs, in words: from the model, and besides it."""
        return self.needs

    def knowledge(self) -> dict[str, Any] | None:
        """What it uses besides the model and the images, for the protocol card."""
        return None

    def answer(self, work: Work) -> Array:
        """The probabilities to use, one row per image, in order."""
        raise MethodError(f"{self.name} has neither `answer` nor `adapt`; write one of them.")

    def adapt(self, work: Work) -> Outcome:
        """The same, for methods whose outcome is more than probabilities."""
        return Outcome(self.answer(work))

    def queries(self, images: int) -> dict[str, int]:
        """What the method spends apart from the first pass, by purpose."""
        return {}

    def plan(self, images: int, limit: int | None) -> Plan:
        """What the method does with so many images and at most `limit` queries."""
        queries = self.queries(images)
        if self.first_pass:
            queries = {"select": images, **queries}
        last_epoch = self.last_epoch(images)
        excess = 0 if limit is None else sum(queries.values()) - limit
        if excess <= 0:
            return Plan(images, self.epochs, queries, limit, last_epoch=last_epoch)
        if not self.elastic:
            assert limit is not None
            raise BudgetError(
                f"{self.name} needs {sum(queries.values()) / images:.4g} queries per image and the "
                f"budget is {limit / images:.4g}; raise the budget."
            )
        # It learns less first, and answers from the first pass last of all.
        learning = [purpose for purpose in queries if purpose not in ("select", "evaluate")]
        for purpose in (*learning, "evaluate"):
            less = min(queries.get(purpose, 0), excess)
            if less:
                queries[purpose] -= less
                excess -= less
        return Plan(images, self.epochs, queries, limit, shortened=True, last_epoch=last_epoch)

    @property
    def epochs(self) -> int:
        """Passes over the images; methods that learn in several have a setting of this name."""
        return 1

    def last_epoch(self, images: int) -> int:
        """The epoch of the last step that will be recorded; 0 if that is not known beforehand."""
        return self.epochs

    def outline(self, plan: Plan) -> str:
        """What the method will do within a plan, in words."""
        return self.summary

    def check(self, images: Images | None = None) -> None:  # noqa: B027 - most need nothing
        """Raise an error for what can be known to fail before the first query.

        Without images, only what does not depend on them.
        """

    def notices(self, work: Work) -> list[str]:
        """What is known to go wrong with these settings, images and model, each with its remedy.

        This must not send a query.
        """
        return []

    def ending(self, work: Work, outcome: Outcome) -> str:
        """Why the run ended, as a sentence, where the outcome gives no reason of its own."""
        steps = len(work.history)
        if outcome.stopped == "interrupted":
            learned = not isinstance(outcome.adaptor, Identity)
            kept = "; the best adaptor so far is kept" if learned else ""
            return f"Stopped by request after {steps:,} step{'s' * (steps != 1)}{kept}."
        if outcome.stopped == "budget":
            return f"The budget of {work.plan.limit:,} queries was enough for {steps:,} steps."
        epochs = work.plan.epochs
        if not epochs:
            return NOTHING_LEARNED
        return f"All {epochs} epochs are done." if epochs > 1 else "Finished."

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting under the name that `but` takes."""
        return {name: value for name, value in asdict(self).items() if name not in DESCRIPTION}

    @property
    def meanings(self) -> dict[str, str]:
        """One line of help for every setting; empty for a setting without help text."""
        texts = meanings_of(self)
        return {name: texts.get(name, "") for name in self.settings}

    def but(self: Self, **settings: Any) -> Self:
        """The same method with other settings.

        >>> from soda_tta import find_method
        >>> find_method("lame").but(neighbours=3).neighbours
        3
        """
        current = self.settings
        if any(ALIASES.get(name) in current for name in settings):
            settings = without_aliases(settings)
        for name in settings:
            if name not in current:
                raise self.unknown_setting(name)
        converted = {name: convert(name, value, current[name]) for name, value in settings.items()}
        return replace(self, **converted)

    def unknown_setting(self, name: str) -> MethodError:
        """The error for a setting that the method does not have."""
        names = ", ".join(self.settings) or "none"
        letters = " (q is directions)" if "directions" in self.settings else ""
        return MethodError(f"{self.name} has no setting {name!r}; it has {names}{letters}.")


NOTHING_LEARNED = "Nothing was learned; the model's own answers are used."

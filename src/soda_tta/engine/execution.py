"""One run from the first pass to the last, whatever its method."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from soda_tta.adaptors import Adaptor, Answering, Identity
from soda_tta.box import Box, Ledger, Meter
from soda_tta.conventions import Convention
from soda_tta.data import Images
from soda_tta.engine.card import Card
from soda_tta.engine.class_matching import card_entry, matched
from soda_tta.engine.clean import Clean
from soda_tta.engine.events import Event, Listener, Notice, Planned, Responded, Step, Waiting
from soda_tta.engine.outcome_check import checked, mistake_in
from soda_tta.engine.passes import Pass
from soda_tta.engine.plan import Plan
from soda_tta.engine.run import Run
from soda_tta.engine.work import Interrupted, Work
from soda_tta.errors import BoxError, BudgetError
from soda_tta.methods.method import Method, Outcome
from soda_tta.storage.book import Book
from soda_tta.storage.run_folder import RunFolder
from soda_tta.storage.stopwatch import Stopwatch
from soda_tta.types import Array, Purpose

NO_BUDGET_LEFT = "Lost requests used up the budget; the model's own answers are used."


class Execution:
    """Runs a method: the first pass, the method itself, the final pass.

    Every method goes the same way: the same stop, notices, resume and averaging.

    Resuming needs no code of its own: the same calls are made again. The ledger starts with every
    earlier query as lost (`storage/book.py`), each pass starts after the rows in its file
    (`engine/passes.py`), and the queries of the method get their recorded responses
    (`box/wrappers/recorded.py`). What is not recovered that way stays lost.
    """

    def __init__(
        self,
        method: Method,
        images: Images,
        box: Box,
        plan: Plan,
        card: Card,
        folder: RunFolder,
        watch: Stopwatch,
    ) -> None:
        self.method = method
        self.images = images
        self.plan = plan
        self.card = card
        self.folder = folder
        self.watch = watch
        self.notices: list[str] = []
        self.listener: Listener | None = None
        self.stop: Callable[[], bool] = lambda: False
        self.groups: Array | None = None
        self.kinds: Array | None = None
        self.clean: Clean | None = None
        self.clean_responses: Array | None = None
        self.convention: Convention | None = None
        # White-box passes cost nothing, so nothing is billed for a response that a crash loses.
        book = folder.book() if method.needs == "probabilities" else Book(None)
        ledger = Ledger(plan.hard_limit, book, margin=plan.margin)
        transcript = folder.transcript("asked")
        self.meter = Meter(box, ledger, transcript, self.wait, aside=plan.aside)

    def listen(self, listener: Listener | None, stop: Callable[[], bool]) -> None:
        """Choose who receives events, and who may stop the run."""
        self.listener = listener
        self.stop = stop
        self.meter.responded = lambda *response: notify(listener, Responded(*response))

    def wait(self, seconds: float, reason: str) -> None:
        """Tell the listener that a request waits for its retry."""
        notify(self.listener, Waiting(seconds, reason))

    def tell(self, event: Event) -> None:
        """Pass an event to the listener; keep notices."""
        self.watch.tick()
        if isinstance(event, Notice):
            self.notices.append(event.text)
        notify(self.listener, event)

    def execute(self, *, is_new: bool) -> Run:
        """The whole run; one that `is_new` leaves nothing behind if its first query fails."""
        seconds = self.folder.seconds_path()
        if seconds is not None:
            self.watch.keep(seconds)
        if self.convention is not None:
            self._count_convention(self.convention.queries)
        self.tell(Planned(self.plan, self.meter.ledger))
        first = self._pass(Identity(), "select")
        try:
            before = self._responses_first(first)
        except Interrupted:
            outcome = Outcome(stopped="interrupted", reason="Stopped during the first pass.")
            return self._result(first.so_far(), None, outcome, [])
        except (BoxError, BudgetError):
            if is_new and not first.done:
                self.folder.forget()  # nothing was answered, most often because of a wrong option
            raise
        work = Work(
            images=self.images,
            meter=self.meter,
            before=read_only(before),
            plan=self.plan,
            seed=self.card.seed,
            folder=self.folder,
            listener=self.tell,
            stop=self.stop,
            groups=self.groups,
            kinds=self.kinds,
        )
        try:
            outcome = self._adapt(work)
        except BoxError:
            if is_new and not self.meter.ledger.answered:
                self.folder.forget()  # as above, for a method without a first pass
            raise
        outcome = replace(outcome, reason=outcome.reason or self.method.ending(work, outcome))
        return self._answered(work, outcome, before if self.method.first_pass else work.before)

    def _responses_first(self, first: Pass) -> Array:
        """What is asked before the method begins; without a first pass, only about clean images."""
        before: Array = np.zeros((len(self.images), 0), np.float32)
        if self.method.first_pass:
            before = first.run()
        if self.clean is not None:
            images = self.clean.images
            self.clean_responses = self._pass(Identity(), "clean", images=images).run()
        return before

    def _answered(self, work: Work, outcome: Outcome, before: Array) -> Run:
        """The result, after the final pass if the outcome is an adaptor."""
        after: Array | None = None
        unreached = 0
        try:
            after, unreached = self._answers(outcome, before)
        except Interrupted:
            reason = "Stopped during the final pass; the adaptor is kept."
            outcome = replace(outcome, stopped="interrupted", reason=reason)
        if after is not None and outcome.average:
            after = (before + after) / 2  # both were received already
        if after is not None:
            after, outcome = matched(after, outcome, self.tell)
        run = self._result(before, after, outcome, work.history)
        return replace(run, unreached=unreached)

    def _answers(self, outcome: Outcome, before: Array) -> tuple[Array | None, int]:
        """The mean responses to all views of all images; how many images were not reached."""
        wanted = self.card.answers != "none" and outcome.stopped != "interrupted"
        if outcome.probabilities is None and not wanted:
            return None, 0
        rows = outcome.probabilities
        unreached = 0
        if rows is None:
            # An image that was not sent as it is has nothing to fall back on.
            fallback = None if np.isnan(before).any() else before
            last = self._pass(outcome.adaptor, "evaluate", fallback=fallback, known=outcome.known)
            rows = last.run()
            unreached = last.unreached
        responses = [rows]
        for name, known in outcome.views.items():
            further = self._pass(outcome.adaptor, "view", fallback=rows, known=known, view=name)
            responses.append(further.run())
        answering = Answering(tuple(outcome.views))
        return rows if answering.is_plain else answering.answers(np.array(responses)), unreached

    def _count_convention(self, queries: int) -> None:
        """Count what was spent before the run: its book has it, where there is one."""
        if self.meter.ledger.book.path is None:
            self.meter.ledger.spend(queries, "convention")
        else:
            self.meter.ledger.recover(queries, "convention")

    def _pass(
        self,
        adaptor: Adaptor,
        purpose: Purpose,
        fallback: Array | None = None,
        known: Array | None = None,
        images: Images | None = None,
        view: str | None = None,
    ) -> Pass:
        return Pass(
            self.images if images is None else images,
            adaptor,
            self.meter,
            purpose,
            self.folder.answers(purpose if view is None else f"{purpose}-{view}"),
            listener=self.tell,
            stop=self.stop,
            fallback=fallback,
            known=known,
            view=view,
        )

    def _adapt(self, work: Work) -> Outcome:
        for text in self.method.notices(work):
            self.tell(Notice(text))
        try:
            outcome = self.method.adapt(work)
        except Interrupted:
            return Outcome(stopped="interrupted")
        except BudgetError:
            if not self.meter.has_lost_queries:
                raise
            return Outcome(work.before, reason=NO_BUDGET_LEFT, stopped="budget")
        except Exception as error:
            mistake = mistake_in(self.method, error)
            if mistake is None:
                raise
            raise mistake from error
        outcome = checked(self.method, outcome, work.before)
        for text in outcome.notices:
            self.tell(Notice(text))
        if outcome.stopped != "interrupted":
            self.meter.close()
        if self.plan.shortened and outcome.stopped == "finished":
            return replace(outcome, stopped="budget")
        return outcome

    def _result(
        self, before: Array, after: Array | None, outcome: Outcome, history: list[Step]
    ) -> Run:
        self.watch.note()  # an interrupted run continues from here
        assert outcome.reason is not None
        facts = {**outcome.facts, "averaged": outcome.average or None}
        stated = str(self.card.settings.get("prior", "unknown"))
        facts["answering"] = card_entry(outcome.adaptor.answering, stated)
        return Run(
            before=before,
            after=after,
            adaptor=outcome.adaptor,
            ledger=self.meter.ledger,
            history=history,
            stopped=outcome.stopped,
            reason=outcome.reason,
            card=self.card.completed(before.shape[1], facts),
            names=[self.images.name(index) for index in range(len(self.images))],
            seconds=self.watch.seconds,
            notices=self.notices,
            verdict=outcome.verdict,
            candidate=outcome.candidate,
            clean=self.clean_responses,
            conditions=outcome.conditions,
        )


def read_only(array: Array) -> Array:
    """A view that a method cannot write to: what it gets is also what the run reports."""
    view = array.view()
    view.flags.writeable = False
    return view


def notify(listener: Listener | None, event: Event) -> None:
    """Pass an event to the listener; without one, notices are warnings."""
    if listener is not None:
        listener(event)
    elif isinstance(event, Notice):
        warnings.warn(event.text, stacklevel=4)

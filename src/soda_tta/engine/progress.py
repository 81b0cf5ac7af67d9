"""Show the events of a run as a bar, in a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock
from typing import TYPE_CHECKING

from soda_tta.display import open_bar
from soda_tta.display.blocks import sparkline
from soda_tta.engine.events import (
    Answered,
    Event,
    Listener,
    Measured,
    Notice,
    Planned,
    Responded,
    Step,
    Waiting,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from soda_tta.box import Ledger
    from soda_tta.engine.plan import Plan

PHASES = {
    "convention": "input convention",
    "select": "first pass",
    "clean": "clean images",
    "conditions": "conditions",  # of the images; no query
    "evaluate": "answering",
    "tune": "choosing lr",
    "probe": "learning",
    "judge": "judging",
    "view": "further views",
    "serve": "answering",
}
STEPS_DRAWN = 400  # of the curve of the objective


class Display:
    """A listener that draws a bar over the queries of a run, and the objective below it.

    Where nothing can be drawn (standard error is a file), only notices are printed.

    Parameters
    ----------
    quiet : show nothing, not even notices.
    spelling : how notices are spelled; the command line replaces arguments by flags.
    """

    def __init__(self, *, quiet: bool = False, spelling: Callable[[str], str] = str) -> None:
        self.bar = open_bar(quiet=quiet)
        self.spelling = spelling
        self.plan: Plan | None = None
        self.ledger: Ledger | None = None
        self.done = 0  # queries, including those that an earlier process spent
        self.purpose = "select"  # of the last event
        self.below = ""
        self.curve: list[float] = []

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.bar.say(self.spelling(event.text))
        elif isinstance(event, Planned):
            self.plan = event.plan
            self.ledger = event.ledger
            self.done = event.ledger.total
            self.below = ""
            first = PHASES[next(iter(event.plan.queries), "select")]
            self.bar.begin(first, event.plan.total)
        elif isinstance(event, Responded):
            # The ledger counts a query when it is sent, perhaps together with many others.
            self._show(event.purpose, self.done + event.queries)
        elif isinstance(event, Answered):
            self.below = f"{event.done:,}/{event.of:,} images"
            self._show(event.purpose)
        elif isinstance(event, Measured):
            self.below = f"{event.done:,}/{event.of:,} images measured, no query"
            self._show("conditions")
        elif isinstance(event, Step):
            self.below = self._progress_of(event)
            self._show(event.purpose)
        elif isinstance(event, Waiting):
            self.below = f"waiting {event.seconds:.0f} s: {event.reason}"
            self._show(self.purpose, self.done)

    def _progress_of(self, step: Step) -> str:
        self.curve = [*self.curve[-STEPS_DRAWN:], step.mutual_information]
        drawn = sparkline(self.curve, 24, self.bar.encoding)
        information = f"mutual information {step.mutual_information:.4f} {drawn}"
        return f"{self._place(step.epoch)}  objective {step.loss:.4f}  {information}"

    def _place(self, epoch: int) -> str:
        """How far the run is: an epoch of so many, or a round where their number is not known."""
        if self.plan is None:
            return f"round {epoch}"
        last = self.plan.epochs if self.plan.last_epoch is None else self.plan.last_epoch
        return f"epoch {epoch}/{last}" if last else f"round {epoch}"

    def _show(self, purpose: str, done: int | None = None) -> None:
        """Draw the bar at `done` queries; by default at all that the ledger counts."""
        if self.plan is None or self.ledger is None:
            return
        self.purpose = purpose
        total = self.ledger.total
        self.done = total if done is None else min(done, total)
        spent = f"{self.done:,} of {self.plan.hard_limit or self.plan.total:,} queries"
        self.bar.show(PHASES.get(purpose, purpose), self.done, spent, self.below)


@contextmanager
def shown(listener: Listener | None, *, progress: bool) -> Iterator[Listener | None]:
    """Who receives the events: the listener and, with `progress`, a display before it.

    Requests are answered in several threads; events are delivered one at a time.
    """
    with ExitStack() as open_displays:
        receivers: list[Listener] = [open_displays.enter_context(Display())] if progress else []
        if listener is not None:
            receivers.append(listener)
        lock = RLock()  # a listener may cause an event itself

        def deliver(event: Event) -> None:
            with lock:
                for receive in receivers:
                    receive(event)

        yield deliver if receivers else None

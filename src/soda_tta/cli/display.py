"""What a person sees during a run. Progress goes to standard error, results to standard output."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from rich.progress import TaskID, TextColumn

from soda_tta.cli.bar import Live
from soda_tta.cli.blocks import sparkline
from soda_tta.cli.spelling import as_flags
from soda_tta.engine.events import Answered, Event, Notice, Planned, Step
from soda_tta.foreign_text import printable

if TYPE_CHECKING:
    from soda_tta.box import Ledger
    from soda_tta.engine.plan import Plan

PHASES = {
    "select": "first pass",
    "evaluate": "answering",
    "tune": "choosing lr",
    "probe": "learning",
    "judge": "judging",
    "serve": "answering",
}
STEPS_DRAWN = 400  # of the curve of the objective


class Display(Live):
    """A live bar over the queries of a run, and the objective below it.

    Without a terminal, only notices are printed.
    """

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(TextColumn("{task.fields[spent]}"), quiet=quiet)
        self.task: TaskID | None = None
        self.plan: Plan | None = None
        self.ledger: Ledger | None = None
        self.curve: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.say(as_flags(event.text))
        elif isinstance(event, Planned):
            self.plan = event.plan
            self.ledger = event.ledger
            first = PHASES[next(iter(event.plan.queries), "select")]
            self.task = self.progress.add_task(first, total=event.plan.total, spent="")
        elif isinstance(event, Answered):
            self._show(event.purpose, f"{event.done:,}/{event.of:,} images")
        elif isinstance(event, Step):
            self._show(event.purpose, self._progress_of(event))

    def _progress_of(self, step: Step) -> str:
        self.curve = [*self.curve[-STEPS_DRAWN:], step.mutual_information]
        drawn = sparkline(self.curve, 24, self.console.encoding)
        information = f"mutual information {step.mutual_information:.4f} {drawn}"
        return f"{self._place(step.epoch)}  objective {step.loss:.4f}  {information}"

    def _place(self, epoch: int) -> str:
        """How far the run is: an epoch of so many, or a round where their number is not known."""
        if self.plan is None:
            return f"round {epoch}"
        last = self.plan.epochs if self.plan.last_epoch is None else self.plan.last_epoch
        return f"epoch {epoch}/{last}" if last else f"round {epoch}"

    def _show(self, purpose: str, state: str) -> None:
        if self.task is None or self.plan is None or self.ledger is None:
            return
        done = self.ledger.total  # including what an earlier process spent
        spent = f"{done:,} of {self.plan.limit or self.plan.total:,} queries"
        phase = PHASES.get(purpose, purpose)
        self.progress.second = state
        self.progress.update(self.task, completed=done, description=phase, spent=spent)


def table(rows: list[tuple[str, Any]]) -> str:
    """Two aligned columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {printable(value)}" for name, value in rows)


def print_columns(margin: str, text: str) -> None:
    """Print a text beside a margin, wrapped if standard output is a terminal."""
    text = printable(text)
    if not sys.stdout.isatty():
        print(f"{margin}{text}".rstrip())
        return
    width = max(30, shutil.get_terminal_size().columns - len(margin))
    first, *rest = textwrap.wrap(text, width) or [""]
    print(f"{margin}{first}".rstrip())
    for line in rest:
        print(" " * len(margin) + line)


def money(queries: int, price: float | None) -> str:
    """What queries cost, given a price per 1,000."""
    if price is None:
        return ""
    return f"; {queries / 1000 * price:,.2f} in total at {price:g} per 1,000 queries"

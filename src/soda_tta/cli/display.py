"""What a person sees while a run works. Progress goes to standard error, results to standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.progress import TaskID, TextColumn

from soda_tta.cli.bar import Live
from soda_tta.cli.blocks import sparkline
from soda_tta.engine.events import Answered, Event, Notice, Planned, Step

if TYPE_CHECKING:
    from soda_tta.box import Ledger
    from soda_tta.engine.plan import Plan

PHASES = {
    "select": "first look",
    "evaluate": "answering",
    "tune": "choosing lr",
    "probe": "learning",
    "judge": "judging",
    "serve": "answering",
}
KEPT = 400  # steps of which the course is drawn


class Display(Live):
    """A live bar over the queries of a run, the course of the objective below; without a terminal, only notices."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(TextColumn("{task.fields[spent]}"), quiet=quiet)
        self.task: TaskID | None = None
        self.plan: Plan | None = None
        self.ledger: Ledger | None = None
        self.course: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.say(event.text)
        elif isinstance(event, Planned):
            self.plan, self.ledger = event.plan, event.ledger
            first = PHASES[next(iter(event.plan.queries), "select")]
            self.task = self.progress.add_task(first, total=event.plan.total, spent="")
        elif isinstance(event, Answered):
            self._show(event.purpose, f"{event.done:,}/{event.of:,} images")
        elif isinstance(event, Step):
            self.course = [*self.course[-KEPT:], event.mutual_information]
            drawn = sparkline(self.course, 24, self.console.encoding)
            state = f"{self._place(event.epoch)}  objective {event.loss:.4f}  "
            self._show(
                event.purpose, f"{state}mutual information {event.mutual_information:.4f} {drawn}"
            )

    def _place(self, epoch: int) -> str:
        """How far it is: of how many epochs, or which round where nobody knows how many there will be."""
        last = (
            None
            if self.plan is None
            else self.plan.epochs
            if self.plan.counted is None
            else self.plan.counted
        )
        return f"epoch {epoch}/{last}" if last else f"round {epoch}"

    def _show(self, purpose: str, state: str) -> None:
        if self.task is None or self.plan is None or self.ledger is None:
            return
        done = self.ledger.total  # also what an earlier process paid
        spent = f"{done:,} of {self.plan.limit or self.plan.total:,} queries"
        self.progress.second = state
        self.progress.update(
            self.task, completed=done, description=PHASES.get(purpose, purpose), spent=spent
        )


def table(rows: list[tuple[str, Any]]) -> str:
    """Two aligned columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def money(queries: int, price: float | None) -> str:
    """What so many queries cost at `price` a thousand."""
    return (
        "" if price is None else f"; {queries / 1000 * price:,.2f} in all at {price:g} a thousand"
    )

"""What a person sees in the terminal. Progress goes to standard error, results to standard output."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from soda_tta.events import Answered, Event, Notice, Planned, Step

if TYPE_CHECKING:
    from soda_tta.box import Ledger
    from soda_tta.plan import Plan

PHASES = {
    "select": "first look",
    "evaluate": "answering",
    "tune": "choosing lr",
    "probe": "learning",
    "serve": "answering",
}


class Display:
    """A live bar over the queries of a run; silent when standard error is not a terminal, but for notices."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.progress = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[spent]}"),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
            disable=quiet or not self.console.is_terminal,
        )
        self.quiet = quiet
        self.task: TaskID | None = None
        self.plan: Plan | None = None
        self.ledger: Ledger | None = None

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            if not self.quiet:
                self.console.print(f"note: {event.text}", style="yellow", markup=False, soft_wrap=True)
        elif isinstance(event, Planned):
            self.plan, self.ledger = event.plan, event.ledger
            self.task = self.progress.add_task("first look", total=event.plan.total, spent="", state="")
        elif isinstance(event, Answered):
            self._show(event.purpose, f"{event.done:,}/{event.of:,} images")
        elif isinstance(event, Step):
            epochs = self.plan.epochs if self.plan else event.epoch
            state = f"epoch {event.epoch}/{epochs}  loss {event.loss:.4f}  MI {event.mutual_information:.4f}"
            self._show(event.purpose, state)

    def _show(self, purpose: str, state: str) -> None:
        if self.task is None or self.plan is None or self.ledger is None:
            return
        done = self.ledger.total  # also what an earlier process paid
        spent = f"{done:,} of {self.plan.limit or self.plan.total:,} queries"
        self.progress.update(self.task, completed=done, description=PHASES[purpose], spent=spent, state=state)


def table(rows: list[tuple[str, Any]]) -> str:
    """Two aligned columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def money(queries: int, price: float | None) -> str:
    """What so many queries cost at `price` a thousand."""
    return "" if price is None else f"; {queries / 1000 * price:,.2f} in all at {price:g} a thousand"

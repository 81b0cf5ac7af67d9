"""What is seen while a grid runs: in a terminal a table that grows, elsewhere a line a cell."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from soda_tta.bench.cell import Cell
from soda_tta.bench.tables import column_names

Entry = tuple[Cell, dict[str, Any]]


class LiveTable:
    """One row a method with its settings: how many of its cells are there, and what they came to on average."""

    def __init__(
        self,
        cells: Iterable[Cell],
        known: Iterable[Entry],
        *,
        quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        self.console, self.quiet = console or Console(stderr=True, highlight=False), quiet
        planned = {cell.key: cell for cell in cells}
        names = column_names([(cell, {}) for cell in planned.values()])
        self.rows = dict(zip(planned, names, strict=True))
        self.seeded = len({cell.seed for cell in planned.values()}) > 1
        self.done = {cell.key: (cell, result) for cell, result in known if cell.key in planned}
        self.progress = Progress(
            TextColumn("cells"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
        )
        self.task = self.progress.add_task("cells", total=len(planned), completed=len(self.done))
        shown = self.console.is_terminal and not quiet
        self.live = (
            Live(self.picture(), console=self.console, refresh_per_second=2) if shown else None
        )

    def __enter__(self) -> LiveTable:
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, cell: Cell, result: dict[str, Any]) -> None:
        """A cell is finished."""
        self.done[cell.key] = (cell, result)
        self.progress.advance(self.task)
        if not self.quiet:
            for notice in dict.fromkeys(result.get("notices", ())):
                self.console.print(f"{cell.title}: {notice}", soft_wrap=True, markup=False)
        if self.live:
            self.live.update(self.picture())
        elif not self.quiet:
            name = self.rows[cell.key] + (f", seed {cell.seed}" if self.seeded else "")
            line = f"{cell.corruption:<18} {name:<30} {result['before']:5.1f} -> {result['after']:5.1f}"
            cost = f"{result['queries_per_image']:7.1f} queries an image  {result['seconds']:.0f} s"
            self.console.print(f"{line}  {cost}", soft_wrap=True, markup=False)

    def complain(self, failure: str) -> None:
        """A cell failed."""
        self.progress.advance(self.task)
        if not self.quiet:
            self.console.print(f"failed: {failure}", soft_wrap=True, markup=False)

    def picture(self) -> Group:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("method", overflow="fold")
        for heading in ("cells", "before", "after", "queries", "last"):
            table.add_column(heading, justify="left" if heading == "last" else "right")
        for name in dict.fromkeys(self.rows.values()):
            keys = [key for key, row in self.rows.items() if row == name]
            there = [self.done[key] for key in keys if key in self.done]
            settings = [f"{len(there)}/{len(keys)}"]
            if there:
                settings += [
                    f"{mean(result[fact] for _, result in there):.1f}"
                    for fact in ("before", "after")
                ]
                settings += [f"{mean(result['queries_per_image'] for _, result in there):,.0f}"]
                settings += [there[-1][0].corruption.replace("_", " ")]
            table.add_row(name, *settings)
        return Group(table, self.progress)

"""The display while a grid runs: a growing table in a terminal, otherwise one line per cell."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from soda_tta.bench.cell import Cell
from soda_tta.bench.columns import column_names
from soda_tta.bench.result import CellResult, Entry


class LiveTable:
    """One row per method with its settings: how many cells are finished, and their means.

    Parameters
    ----------
    cells : the cells of the grid.
    finished : results that exist already, for example a `Store`.
    quiet : print nothing (default False).
    console : where to print (default: standard error).
    """

    def __init__(
        self,
        cells: Iterable[Cell],
        finished: Iterable[Entry],
        *,
        quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self.quiet = quiet
        planned = {cell.key: cell for cell in cells}
        names = column_names(list(planned.values()))
        self.rows = dict(zip(planned, names, strict=True))
        self.has_seeds = len({cell.seed for cell in planned.values()}) > 1
        self.finished = {entry[0].key: entry for entry in finished if entry[0].key in planned}
        self.progress = Progress(
            TextColumn("cells"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
        )
        self.task = self.progress.add_task(
            "cells", total=len(planned), completed=len(self.finished)
        )
        self.live: Live | None = None
        if self.console.is_terminal and not quiet:
            self.live = Live(self.picture(), console=self.console, refresh_per_second=2)

    def __enter__(self) -> LiveTable:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, cell: Cell, result: CellResult) -> None:
        """Show a finished cell."""
        self.finished[cell.key] = (cell, result)
        self.progress.advance(self.task)
        if not self.quiet:
            for notice in dict.fromkeys(result.notices):
                self.print(f"{cell.title}: {notice}")
        if self.live:
            self.live.update(self.picture())
        elif not self.quiet:
            seed = f", seed {cell.seed}" if self.has_seeds else ""
            self.print(
                f"{cell.corruption:<18} {self.rows[cell.key] + seed:<30} "
                f"{result.before:5.1f} -> {result.after:5.1f}  "
                f"{result.queries_per_image:7.1f} queries per image  {result.seconds:.0f} s"
            )

    def report_failure(self, failure: str) -> None:
        """Show a failed cell."""
        self.progress.advance(self.task)
        if not self.quiet:
            self.print(f"failed: {failure}")

    def print(self, line: str) -> None:
        """Print one line as it is."""
        self.console.print(line, soft_wrap=True, markup=False)

    def picture(self) -> Group:
        """The table and the progress bar."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("method", overflow="fold")
        for heading in ("cells", "before", "after", "queries"):
            table.add_column(heading, justify="right")
        table.add_column("last", justify="left")
        for name in dict.fromkeys(self.rows.values()):
            keys = [key for key, row in self.rows.items() if row == name]
            finished = [self.finished[key] for key in keys if key in self.finished]
            count = f"{len(finished)}/{len(keys)}"
            table.add_row(name, count, *(summary(finished) if finished else ()))
        return Group(table, self.progress)


def summary(entries: list[Entry]) -> list[str]:
    """The means of some results, and the last corruption among them."""
    results = [result for _, result in entries]
    last, _ = entries[-1]
    return [
        f"{mean(result.before for result in results):.1f}",
        f"{mean(result.after for result in results):.1f}",
        f"{mean(result.queries_per_image for result in results):,.0f}",
        last.corruption.replace("_", " "),
    ]

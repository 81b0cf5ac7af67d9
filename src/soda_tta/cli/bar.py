"""A progress bar on standard error, for work that is counted in images or in bytes."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """Silent when standard error is not a terminal, or when asked to be quiet."""

    def __init__(self, what: str, total: int | None = None, *, in_bytes: bool = False, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.quiet = quiet
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            DownloadColumn() if in_bytes else MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
            disable=quiet or not self.console.is_terminal,
        )
        self.task = self.progress.add_task(what, total=total)

    def __enter__(self) -> Bar:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def advance(self, count: int) -> None:
        self.progress.advance(self.task, count)

    def reach(self, done: int, total: int | None) -> None:
        self.progress.update(self.task, completed=done, total=total)

    def say(self, text: str) -> None:
        if not self.quiet:
            self.console.print(f"note: {text}", style="yellow", markup=False, soft_wrap=True)

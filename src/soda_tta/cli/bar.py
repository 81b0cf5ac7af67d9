"""Progress on standard error, which disappears when the work is done."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from soda_tta.foreign_text import printable

if TYPE_CHECKING:
    from typing_extensions import Self


class Live:
    """A bar and its columns. Nothing is drawn if standard error is not a terminal, or if `quiet`.

    Colours follow the terminal and NO_COLOR.
    """

    def __init__(self, *beside: ProgressColumn, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.quiet = quiet
        self.progress = TwoLines(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=24),
            *beside,
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
            disable=quiet or not self.console.is_terminal,
        )

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def say(self, text: str) -> None:
        """Print a notice above the bar."""
        if not self.quiet:
            note = f"note: {printable(text)}"
            self.console.print(note, style="yellow", markup=False, soft_wrap=True)


class TwoLines(Progress):
    """A bar, and a second line below it for what does not fit beside it."""

    def __init__(self, *columns: ProgressColumn, **options: Any) -> None:
        self.second = ""
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        if self.second:
            yield Text(self.second, style="dim", no_wrap=True, overflow="ellipsis")


class Bar(Live):
    """A bar for work that is counted in images or in bytes."""

    def __init__(
        self, what: str, total: int | None = None, *, in_bytes: bool = False, quiet: bool = False
    ) -> None:
        super().__init__(DownloadColumn() if in_bytes else MofNCompleteColumn(), quiet=quiet)
        self.task = self.progress.add_task(what, total=total)

    def advance(self, count: int) -> None:
        """Count so many more."""
        self.progress.advance(self.task, count)

    def reach(self, done: int, total: int | None) -> None:
        """Show that so many of `total` are done."""
        self.progress.update(self.task, completed=done, total=total)

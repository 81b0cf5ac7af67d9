"""A bar on standard error, which disappears when the work is done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
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

    def __exit__(self, *_: object) -> None:
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


class TerminalBar(Live):
    """A bar with a text beside it and a line below it; see `display.Bar`."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(TextColumn("{task.fields[beside]}"), quiet=quiet)
        self.task: TaskID | None = None
        self.encoding = self.console.encoding

    def start(self) -> None:
        """Draw from now on."""
        self.progress.start()

    def stop(self) -> None:
        """Remove what is drawn."""
        self.progress.stop()

    def begin(self, name: str, total: int) -> None:
        """Begin a bar of this length."""
        self.task = self.progress.add_task(name, total=total, beside="")

    def show(self, name: str, done: int, beside: str, below: str) -> None:
        """Show how much is done."""
        assert self.task is not None
        self.progress.second = below
        self.progress.update(self.task, completed=done, description=name, beside=beside)

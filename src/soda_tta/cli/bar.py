"""A bar for commands that count images or bytes."""

from __future__ import annotations

from rich.progress import DownloadColumn, MofNCompleteColumn

from soda_tta.display.terminal import Live


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

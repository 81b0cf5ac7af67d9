"""The book of a ledger: every query is written down before it is sent."""

from __future__ import annotations

from pathlib import Path

from soda_tta.errors import RunError
from soda_tta.storage.atomic import GrowingFile, complete_lines


class Book:
    """Lines of `purpose queries` in a file that only grows.

    A query that was sent before a crash is billed even if its response was never received. A
    process that resumes finds it here.

    Parameters
    ----------
    path : where the lines are kept; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.file = GrowingFile(path)

    def append(self, purpose: str, queries: int) -> None:
        """Write down queries that are about to be sent; a kill after this does not lose them."""
        self.file.append(f"{purpose} {queries}\n".encode() if queries else b"")

    def take_back(self, purpose: str, queries: int, *, instead: str | None) -> None:
        """Write down that queries got no response: they count for another purpose, or not at all.

        Half of it, after a crash, counts too many and not too few.
        """
        other = "" if instead is None else f"{instead} {queries}\n"
        self.file.append(f"{other}{purpose} {-queries}\n".encode())

    def repair(self) -> None:
        """Remove a line that a crash has cut off: its queries were never sent."""
        if self.path is None or not self.path.exists():
            return
        with self.path.open("r+b") as file:
            data = file.read()
            complete = complete_lines(data)
            if complete != data:
                file.truncate(len(complete))

    def by_purpose(self) -> dict[str, int]:
        """All queries written down; a line cut off by a crash was never sent.

        Raises ValueError if a complete line is damaged.
        """
        if self.path is None or not self.path.exists():
            return {}
        totals: dict[str, int] = {}
        for line in complete_lines(self.path.read_bytes()).decode().splitlines():
            purpose, queries = line.split()
            totals[purpose] = totals.get(purpose, 0) + int(queries)
        return totals

    def calls(self) -> int:
        """The requests that were sent, one line each; those that never left were taken back."""
        if self.path is None or not self.path.exists():
            return 0
        lines = complete_lines(self.path.read_bytes()).splitlines()
        return sum(-1 if line.split()[1].startswith(b"-") else 1 for line in lines)

    def opened(self) -> dict[str, int]:
        """All queries written down, in a file that can be continued; RunError if it is damaged."""
        try:
            self.repair()
            return self.by_purpose()
        except ValueError as error:
            raise RunError(
                f"{self.path} is damaged, so what was billed is not known ({error}); start a new "
                "run with another out=."
            ) from error

    def remove(self) -> None:
        """Delete the file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

"""A journal: one JSON object per line, appended as soon as it is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from soda_tta.errors import RunError
from soda_tta.foreign_json import parse_json
from soda_tta.storage.atomic import append_bytes, complete_lines, write_bytes


class Journal:
    """JSON lines in a file that only grows. Floating-point numbers are restored exactly.

    Parameters
    ----------
    path : where the lines are kept; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    def append(self, entry: dict[str, Any]) -> None:
        """Add one line; it is in the file when this returns."""
        if self.path is not None:
            append_bytes(self.path, encoded(entry))

    def rewrite(self, entries: list[dict[str, Any]]) -> None:
        """Replace all lines, atomically."""
        if self.path is not None:
            write_bytes(self.path, b"".join(encoded(entry) for entry in entries))

    def read(self) -> list[dict[str, Any]]:
        """Return every complete line; a line cut off by a crash is removed from the file."""
        if self.path is None or not self.path.exists():
            return []
        data = self.path.read_bytes()
        complete = complete_lines(data)
        if complete != data:
            with self.path.open("r+b") as file:
                file.truncate(len(complete))
        try:
            return [decoded(line) for line in complete.splitlines()]
        except ValueError as error:
            raise RunError(
                f"{self.path} is not a journal of this version ({error}); start a new run."
            ) from error


def encoded(entry: dict[str, Any]) -> bytes:
    """One line of a journal."""
    return (json.dumps(entry) + "\n").encode()


def decoded(line: bytes) -> dict[str, Any]:
    """The object of one line of a journal; ValueError if the line is something else."""
    entry = parse_json(line)
    if not isinstance(entry, dict):
        raise ValueError(f"{type(entry).__name__} in place of an object")
    return entry


def read_intact_lines(path: Path) -> tuple[list[dict[str, Any]], str | None]:
    """Read a journal without changing it: the lines up to the first damaged one, and what is wrong.

    Raises OSError if the file cannot be read at all.
    """
    entries: list[dict[str, Any]] = []
    for line in complete_lines(path.read_bytes()).splitlines():
        try:
            entries.append(decoded(line))
        except ValueError:
            problem = (
                f"line {len(entries) + 1} of {path.name} is damaged. The steps before it are shown"
            )
            return entries, problem
    return entries, None

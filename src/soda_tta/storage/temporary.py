"""Temporary files that nobody can foresee, and that do not outlive their process for long.

Each is created under a name of its own (never through a link that somebody has put there) and is
locked while it is written. A lock ends with its process, so that an unlocked one is left over from
a process that was killed. The next process that writes to the folder removes it.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: left-over files stay, because one in use cannot be told apart
    fcntl = None  # type: ignore[assignment]

CREATE = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
# Digits: the name of a process, as earlier versions wrote it.
OURS = re.compile(r"\.(?P<name>.+)\.([0-9a-f]{16}|\d+)\.tmp", re.DOTALL)

_visited: set[Path] = set()  # folders in which this process has removed what was left over


def temporary_name(path: Path) -> Path:
    """A path next to `path` that cannot be foreseen."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def is_temporary(path: Path, name: str) -> bool:
    """Whether this is a temporary file for a file of that name.

    >>> is_temporary(Path(".run.json.0123456789abcdef.tmp"), "run.json")
    True
    """
    match = OURS.fullmatch(path.name)
    return match is not None and match["name"] == name


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """Yield an empty file next to `path`, locked for the block and removed after it."""
    if path.parent not in _visited:  # once: a folder may hold many files
        remove_left_over(path.parent)
        _visited.add(path.parent)
    temporary, descriptor = _create_locked(path)
    try:
        yield temporary
    finally:
        with suppress(OSError):  # whatever prevented the write may also prevent the clean-up
            temporary.unlink(missing_ok=True)
        os.close(descriptor)


def _create_locked(path: Path) -> tuple[Path, int]:
    """Create a temporary file and lock it, before another process takes it for left over."""
    while True:
        temporary = temporary_name(path)
        descriptor = os.open(temporary, CREATE, 0o666)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)  # another process was faster and has removed it


def remove_left_over(folder: Path) -> None:
    """Remove the temporary files of processes that were killed; those in use are left alone."""
    if fcntl is None:
        return
    for name in os.listdir(folder):
        if not OURS.fullmatch(name):
            continue
        with suppress(OSError):  # in use, gone already, a link, a folder, or not ours
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (folder / name).unlink()
            finally:
                os.close(descriptor)

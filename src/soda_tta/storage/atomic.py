"""Files that are either complete or absent, and files that only grow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from soda_tta.errors import StorageError
from soda_tta.storage.temporary import temporary_file


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` if, and only if, the block succeeds."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(path) as temporary:
            yield temporary
            descriptor = os.open(temporary, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(
            f"{path} could not be written: {reason}. The previous content is kept."
        ) from error


def make_folder(folder: Path) -> bool:
    """Create a folder and its parents; return whether it had to be created."""
    try:
        exists = folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise StorageError(f"{folder} is a file, not a folder; choose another out=.") from None
    except OSError as error:
        raise StorageError(
            f"{folder} could not be created: {error.strerror}; choose another out=."
        ) from error
    return not exists


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file with `data`, atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Replace a file with `text`, atomically."""
    write_bytes(path, text.encode(errors="surrogateescape"))  # a file name need not be UTF-8


def append_bytes(path: Path, data: bytes) -> None:
    """Append to a file; create it if it does not exist. A link in its place is refused."""
    try:
        with open(path, "ab", opener=_open_itself) as file:
            file.write(data)
    except OSError as error:
        raise StorageError(
            f"{path} could not be written: {error.strerror}. "
            "Free some space, then continue with resume=True."
        ) from error


def _open_itself(path: str, flags: int) -> int:
    """Open a file, but not through a link: only this package writes files that grow."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def complete_lines(data: bytes) -> bytes:
    """The part of a growing file that ends with a newline; a crash may leave half a line."""
    return data[: data.rfind(b"\n") + 1]

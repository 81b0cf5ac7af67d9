"""Files that are either complete or absent, and files that only grow."""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from soda_tta.errors import StorageError
from soda_tta.storage.temporary import temporary_file

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
SYNC_EVERY = 0.5  # seconds


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
        # pyarrow gives a number and a text of its own
        reason = os.strerror(error.errno) if error.errno else error
        remedy = " Free some space." if error.errno in NO_SPACE else ""
        kept = " The previous content is kept." if path.exists() else ""
        raise StorageError(f"{path} could not be written: {reason}.{remedy}{kept}") from error


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


def append_bytes(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Append to a file; create it if it does not exist. A link in its place is refused.

    What cannot be appended whole is not appended at all. With `sync`, the data are on disk when
    this returns, and a power cut does not lose them.
    """
    try:
        with open(path, "ab", buffering=0, opener=_open_itself) as file:
            before = file.tell()
            try:
                written = file.write(data)
                while written < len(data):  # the rest fails if there is no space
                    written += file.write(data[written:])
                if sync:
                    os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    file.truncate(before)
                raise
    except OSError as error:
        raise StorageError(
            f"{path} could not be written: {error.strerror}. "
            "Free some space, then continue with resume=True."
        ) from error


def _open_itself(path: str, flags: int) -> int:
    """Open a file, but not through a link: only this package writes files that grow."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


class GrowingFile:
    """A file that grows while something is billed.

    What is appended survives a kill. A sync, which is needed to survive a power cut, takes some
    milliseconds, more than many a request; so there is one per `SYNC_EVERY` seconds, and a power
    cut loses at most what was appended in that time.

    Parameters
    ----------
    path : the file; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.synced = -math.inf  # when, on the monotonic clock

    def append(self, data: bytes) -> None:
        """Append all of it, or nothing."""
        if self.path is None or not data:
            return
        sync = time.monotonic() - self.synced >= SYNC_EVERY
        append_bytes(self.path, data, sync=sync)
        if sync:
            self.synced = time.monotonic()


def complete_lines(data: bytes) -> bytes:
    """The part of a growing file that ends with a newline; a crash may leave half a line."""
    return data[: data.rfind(b"\n") + 1]

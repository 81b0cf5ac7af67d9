"""Files that are either there whole or not at all, files that only grow, and places where one process works alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from soda_tta.errors import StorageError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place if, and only if, the block succeeds."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError as error:
        raise StorageError(
            f"{path} could not be written: {error.strerror or error}. What was there before is kept."
        ) from error
    finally:
        with suppress(OSError):  # what stood in the way of writing may stand in the way of this
            temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> bool:
    """Whether it had to be made."""
    try:
        there = folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise StorageError(f"{folder} is a file; choose another --out.") from None
    except OSError as error:
        raise StorageError(
            f"{folder} could not be made: {error.strerror}; choose another --out."
        ) from error
    return not there


def write_bytes(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode(errors="surrogateescape"))  # a file name need not be UTF-8


def append_bytes(path: Path, data: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        raise StorageError(
            f"{path} could not be written: {error.strerror}. Make room, then continue with --resume."
        ) from error


@contextmanager
def alone(place: Path, otherwise: str) -> Iterator[None]:
    """Nobody else is in such a block of this file or folder; the lock ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # on Windows, where a folder cannot be opened either
        yield
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StorageError(otherwise) from None
        yield
    finally:
        os.close(descriptor)

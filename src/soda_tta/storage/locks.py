"""A lock on a file or folder that ends with the process, however the process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from soda_tta.errors import StorageError


@contextmanager
def locked(path: Path, message: str) -> Iterator[None]:
    """Lock `path` for the block; raise `StorageError(message)` if another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows, where a folder cannot be opened for locking either
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StorageError(message) from None
        yield
    finally:
        os.close(descriptor)

"""Records in a file that only grows: each is whole, or it is as if it had never been written."""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from soda_tta.storage.atomic import GrowingFile

HEADER = struct.Struct("<II")  # length and checksum of what follows


class Records:
    """Byte strings in the order they were appended, safe to append from several threads.

    A kill may cut off the last record, and a power cut may leave zeros in its place. Such a record
    is removed when the file is opened.

    Parameters
    ----------
    path : where they are kept; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.file = GrowingFile(path)
        self.kept: list[bytes] = []
        self._lock = threading.Lock()
        if path is None or not path.exists():
            return
        self.kept = list(read_records(path))
        whole = sum(HEADER.size + len(record) for record in self.kept)
        if whole < path.stat().st_size:
            with path.open("r+b") as file:
                file.truncate(whole)

    def append(self, record: bytes) -> None:
        """Add one record; a kill after this returns does not lose it."""
        header = HEADER.pack(len(record), zlib.crc32(record))
        with self._lock:
            self.file.append(header + record)

    def clear(self) -> None:
        """Remove all records."""
        self.kept = []
        if self.path is not None and self.path.exists():
            with self.path.open("r+b") as file:
                file.truncate(0)


def read_records(path: Path) -> Iterator[bytes]:
    """The whole records of a file, which is not changed."""
    data = path.read_bytes() if path.is_file() else b""
    place = 0
    while place + HEADER.size <= len(data):
        length, checksum = HEADER.unpack_from(data, place)
        start = place + HEADER.size
        record = data[start : start + length]
        if len(record) < length or not record or zlib.crc32(record) != checksum:
            return
        yield record
        place = start + length

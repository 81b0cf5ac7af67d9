"""A transcript: responses recorded in order, and replayed to a process that starts over."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from soda_tta.storage.atomic import append_bytes
from soda_tta.types import Array

HEADER = struct.Struct("<16sQII")  # digest of the query, queries lost so far, rows, classes
# In place of a digest, after the method's last decision. Without it, queries lost in the final pass
# would let a replayed search see a smaller budget at that decision, and decide differently.
END = bytes(16)


class Transcript:
    """Queries (by their digests) and their responses in the order they were made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0  # bytes replayed so far
        self.content = path.read_bytes() if path.exists() else b""

    def next(self, digest: bytes) -> Array | None:
        """The recorded response to this query.

        None where the recording ends, is cut off, or continues with another query.
        """
        entry = self._entry()
        if entry is None or entry[0] != digest:
            return None
        _, _, rows, classes = entry
        start = self.place + HEADER.size
        self.place = start + 4 * rows * classes
        numbers = np.frombuffer(self.content, "<f4", rows * classes, start)
        return numbers.reshape(rows, classes).copy()

    def _entry(self) -> tuple[bytes, int, int, int] | None:
        if self.place + HEADER.size > len(self.content):
            return None
        digest, lost, rows, classes = HEADER.unpack_from(self.content, self.place)
        end = self.place + HEADER.size + 4 * rows * classes
        return (digest, lost, rows, classes) if end <= len(self.content) else None

    def lost_then(self, lost_now: int) -> int:
        """The queries known to be lost when the next recorded response was received.

        A decision that depends on the budget must come out the second time as it did the first:
        what was lost later was not lost then. `lost_now` is returned once the replay has ended.
        """
        entry = self._entry()
        return lost_now if entry is None else entry[1]

    def end(self, lost: int) -> None:
        """Record that nothing more was asked, unless that is recorded already."""
        if self.next(END) is None:
            self.append(END, lost, np.zeros((0, 0), np.float32))

    def append(self, digest: bytes, lost: int, response: Array) -> None:
        """Record one response."""
        if self.place < len(self.content):
            # What follows is cut off, or belongs to queries that are not made any more.
            with self.path.open("r+b") as file:
                file.truncate(self.place)
        header = HEADER.pack(digest, lost, *response.shape)
        append_bytes(self.path, header + response.astype("<f4").tobytes())
        self.content = b""  # nothing is left to replay
        self.place = 0

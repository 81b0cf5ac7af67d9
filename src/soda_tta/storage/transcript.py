"""A transcript: responses recorded as they arrive, and replayed to a process that starts over."""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from soda_tta.storage.records import Records
from soda_tta.types import Array

# number of the query, queries without a response when it was decided on, rows, classes
HEADER = struct.Struct("<QQII")
DIGEST_BYTES = 16


class Transcript:
    """The responses to every request, by the query they belong to and the digests of the images.

    A method makes its queries one after the other, in the same order each time. The requests of one
    query may be answered in any order, and may be split differently by another process.

    Parameters
    ----------
    path : where responses are kept.
    """

    def __init__(self, path: Path) -> None:
        self.records = Records(path)
        self._lock = threading.Lock()
        self._restart()
        for record in self.records.kept:
            self._read(record)
        self.records.kept = []

    def _restart(self) -> None:
        self.query = 0  # the number of the current one; 0 before the first
        self._rows: dict[tuple[int, bytes], deque[Array]] = {}
        self._wasted: dict[int, int] = {}  # by the number of the query

    def _read(self, record: bytes) -> None:
        number, wasted, count, classes = HEADER.unpack_from(record)
        self._wasted.setdefault(number, wasted)
        rows = np.frombuffer(record, "<f4", offset=HEADER.size + count * DIGEST_BYTES)
        for index, row in enumerate(rows.reshape(count, classes)):
            start = HEADER.size + index * DIGEST_BYTES
            key = (number, record[start : start + DIGEST_BYTES])
            self._rows.setdefault(key, deque()).append(row)

    def begin(self) -> int:
        """Begin the next query; returns its number."""
        self.query += 1
        return self.query

    def holds(self, number: int) -> bool:
        """Whether any response to this query is recorded."""
        return number in self._wasted

    def take(self, number: int, digests: Sequence[bytes]) -> list[Array | None]:
        """The recorded rows of these images in this query; None where there is none."""
        with self._lock:
            queues = [self._rows.get((number, digest)) for digest in digests]
            return [queue.popleft() if queue else None for queue in queues]

    def append(self, number: int, wasted: int, digests: Sequence[bytes], rows: Array) -> None:
        """Record the response to one request; a kill after this does not lose it."""
        header = HEADER.pack(number, wasted, *rows.shape)
        self.records.append(header + b"".join(digests) + rows.astype("<f4").tobytes())

    def wasted_then(self, now: int) -> int:
        """The queries without a response when the next query was decided on for the first time.

        A decision that depends on the budget must come out the second time as it did the first:
        what was lost later was not lost then. `now` is returned once the replay has ended.
        """
        return self._wasted.get(self.query + 1, now)

    def end(self, wasted: int) -> None:
        """Record that nothing more was asked, unless that is recorded already.

        Without it, queries lost in the final pass would let a replayed search see a smaller budget
        at its last decision, and decide differently.
        """
        if not self.holds(self.begin()):
            self.append(self.query, wasted, [], np.zeros((0, 0), np.float32))

    def clear(self) -> None:
        """Forget all queries: what came of them is kept elsewhere."""
        self._restart()
        self.records.clear()

"""Answers written down as they come, and told again in the same order to a process that starts anew after a kill."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.wrappers.metered import Ledger, Metered
from soda_tta.storage.atomic import append_bytes
from soda_tta.types import Array

HEADER = struct.Struct("<16sQII")  # digest of the question, queries lost until then, rows, classes
END = bytes(16)  # stands where a question would: nothing more was asked


class Transcript:
    """Questions (by their digests) and answers in the order they were asked, in a file that only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0  # up to here the file has been told again
        self.whole = path.read_bytes() if path.exists() else b""

    def next(self, digest: bytes) -> Array | None:
        """The answer written down for this question; None where the file ends, is torn, or goes another way."""
        if (entry := self._entry()) is None or entry[0] != digest:
            return None
        _, _, rows, classes = entry
        start = self.place + HEADER.size
        self.place = start + 4 * rows * classes
        return np.frombuffer(self.whole, "<f4", rows * classes, start).reshape(rows, classes).copy()

    def _entry(self) -> tuple[bytes, int, int, int] | None:
        if self.place + HEADER.size > len(self.whole):
            return None
        digest, lost, rows, classes = HEADER.unpack_from(self.whole, self.place)
        whole = self.place + HEADER.size + 4 * rows * classes <= len(self.whole)
        return (digest, lost, rows, classes) if whole else None

    def lost_then(self, now: int) -> int:
        """The queries known to be lost when what is told next was asked; `now` where nothing is left to tell.

        So whoever decides by what is left decides a second time as the first: answers that are still to be told, and
        queries that were lost later, were not lost then.
        """
        entry = self._entry()
        return now if entry is None else entry[1]

    def end(self, lost: int) -> None:
        """Write down that nothing more was asked, or find it written."""
        if self.next(END) is None:
            self.append(END, lost, np.zeros((0, 0), np.float32))

    def append(self, digest: bytes, lost: int, answer: Array) -> None:
        if self.place < len(
            self.whole
        ):  # what follows is torn, or belongs to questions nobody asks any more
            with self.path.open("r+b") as file:
                file.truncate(self.place)
        entry = HEADER.pack(digest, lost, *answer.shape) + answer.astype("<f4").tobytes()
        append_bytes(self.path, entry)
        self.whole, self.place = b"", 0  # nothing is left to tell


def asking(box: Box, ledger: Ledger, purpose: str, transcript: Transcript | None = None) -> Box:
    """The box for one purpose: metered, and with a transcript told again what was paid before a kill."""
    metered = Metered(box, ledger, purpose)
    return metered if transcript is None else Recorded(metered, transcript)


def left_to_spend(ledger: Ledger, transcript: Transcript | None) -> int | None:
    """Queries within the limit, as the process saw it that asked for what a transcript tells again."""
    if ledger.left is None or transcript is None:
        return ledger.left
    return ledger.left + ledger.lost - transcript.lost_then(ledger.lost)


class Recorded(Wrapper):
    """A metered box whose answers survive the process: asked the same questions again, it need not ask the model."""

    box: Metered

    def __init__(self, box: Metered, transcript: Transcript) -> None:
        super().__init__(box)
        self.transcript = transcript

    def __call__(self, images: Array) -> Array:
        digest = hashlib.blake2b(
            np.ascontiguousarray(images, np.float32).data, digest_size=16
        ).digest()
        kept = self.transcript.next(digest)
        if kept is not None:
            self.box.ledger.recover(len(kept), self.box.purpose)
            return kept
        answer = self.box(images)
        self.transcript.append(digest, self.box.ledger.lost, answer)
        return answer

"""Answers written down as they come, and told again in the same order to a process that starts anew after a kill."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np

from soda_tta.atomic import append_bytes
from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import Array
from soda_tta.box.metered import Ledger, Metered

HEADER = struct.Struct("<16sII")  # digest of the question, rows, classes


class Transcript:
    """Questions (by their digests) and answers in the order they were asked, in a file that only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0  # up to here the file has been told again
        self.whole = path.read_bytes() if path.exists() else b""

    def next(self, digest: bytes) -> Array | None:
        """The answer written down for this question; None where the file ends, is torn, or goes another way."""
        start = self.place + HEADER.size
        if start <= len(self.whole):
            asked, rows, classes = HEADER.unpack_from(self.whole, self.place)
            end = start + 4 * rows * classes
            if asked == digest and end <= len(self.whole):
                self.place = end
                return np.frombuffer(self.whole, "<f4", rows * classes, start).reshape(rows, classes).copy()
        return None

    def untold(self) -> int:
        """How many answers are still to be told again: a ledger counts them as lost until they are."""
        place, count = self.place, 0
        while place + HEADER.size <= len(self.whole):
            _, rows, classes = HEADER.unpack_from(self.whole, place)
            place += HEADER.size + 4 * rows * classes
            count += rows if place <= len(self.whole) else 0
        return count

    def append(self, digest: bytes, answer: Array) -> None:
        if self.place < len(self.whole):  # what follows is torn, or belongs to questions nobody asks any more
            with self.path.open("r+b") as file:
                file.truncate(self.place)
        entry = HEADER.pack(digest, *answer.shape) + answer.astype("<f4").tobytes()
        append_bytes(self.path, entry)
        self.whole, self.place = b"", 0  # nothing is left to tell


def asking(box: Box, ledger: Ledger, purpose: str, transcript: Transcript | None = None) -> Box:
    """The box for one purpose: metered, and with a transcript told again what was paid before a kill."""
    metered = Metered(box, ledger, purpose)
    return metered if transcript is None else Recorded(metered, transcript)


def left_to_spend(ledger: Ledger, transcript: Transcript | None) -> int | None:
    """Queries within the limit; what a transcript will tell again only seems to be lost."""
    return ledger.left if ledger.left is None or transcript is None else ledger.left + transcript.untold()


class Recorded(Wrapper):
    """A metered box whose answers survive the process: asked the same questions again, it need not ask the model."""

    box: Metered

    def __init__(self, box: Metered, transcript: Transcript) -> None:
        super().__init__(box)
        self.transcript = transcript

    def __call__(self, images: Array) -> Array:
        digest = hashlib.blake2b(np.ascontiguousarray(images, np.float32).data, digest_size=16).digest()
        kept = self.transcript.next(digest)
        if kept is not None:
            self.box.ledger.recover(len(kept), self.box.purpose)
            return kept
        answer = self.box(images)
        self.transcript.append(digest, answer)
        return answer

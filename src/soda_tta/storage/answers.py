"""The probabilities of a pass over all images, kept request by request as they arrive."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from soda_tta.errors import RunError
from soda_tta.storage.records import Records, read_records
from soda_tta.types import Array

HEADER = struct.Struct("<QII")  # place of the first image, rows, classes
TOLERANCE = 0.05  # of a sum; half-precision models and rounded answers stay inside


class AnswerFile:
    """Rows of float32 probabilities, in any order, each with the place of its image.

    `kept` holds the rows that an earlier process has received; rows that it has not are NaN.

    Parameters
    ----------
    path : where rows are kept; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.records = Records(path)
        self.kept = assembled(self.records.kept)

    def write(self, places: Array, rows: Array) -> None:
        """Keep the rows of the images at these places; a kill after this does not lose them."""
        runs = np.split(np.arange(len(places)), np.flatnonzero(np.diff(places) != 1) + 1)
        for run in runs:
            header = HEADER.pack(int(places[run[0]]), len(run), rows.shape[1])
            self.records.append(header + rows[run].astype("<f4").tobytes())

    def check(self) -> None:
        """Raise a RunError if what was kept are not probabilities."""
        problem = problem_of(self.kept) if len(self.kept) else None
        if problem is not None:
            raise RunError(
                f"{self.records.path} is damaged: {problem}; start a new run, or remove the file "
                "and the answers in it."
            )


def problem_of(rows: Array) -> str | None:
    """What is wrong with rows of probabilities; None if nothing is. Rows of NaN are unanswered."""
    if rows.ndim != 2 or rows.dtype.kind != "f" or not len(rows) or rows.shape[1] < 2:
        return f"it holds {rows.dtype} values of shape {rows.shape}, not rows of probabilities"
    answered = rows[~np.isnan(rows).all(axis=1)]
    if not (answered >= 0).all() or not (answered <= 1 + TOLERANCE).all():
        return "its values are not probabilities"
    if answered.size and np.abs(answered.sum(axis=1) - 1).max() > TOLERANCE:
        return "its rows do not sum to 1"
    return None


def read_rows(path: Path) -> Array | None:
    """The rows of the first images of an answer file, or None if there are none."""
    rows = assembled(read_records(path))
    if not rows.size:
        return None
    missing = np.flatnonzero(np.isnan(rows[:, 0]))
    complete: Array = rows[: missing[0]] if len(missing) else rows
    return complete if len(complete) else None


def assembled(records: Iterable[bytes]) -> Array:
    """All rows by the place of their image; NaN where there is none."""
    pieces = []
    for record in records:
        start, count, classes = HEADER.unpack_from(record)
        rows = np.frombuffer(record, "<f4", offset=HEADER.size).reshape(count, classes)
        pieces.append((start, rows))
    if not pieces:
        return np.zeros((0, 0), np.float32)
    length = max(start + len(rows) for start, rows in pieces)
    table = np.full((length, pieces[0][1].shape[1]), np.nan, np.float32)
    for start, rows in pieces:
        table[start : start + len(rows)] = rows
    return table

"""The probabilities of a pass over all images, kept piece by piece as they arrive."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from soda_tta.errors import RunError
from soda_tta.storage.atomic import append_bytes
from soda_tta.types import Array

TOLERANCE = 0.05  # of a sum; half-precision models and rounded answers stay inside
HEADER_BYTES = 8  # the number of classes, as a little-endian int64


class AnswerFile:
    """Rows of float32 probabilities after a header with the number of classes.

    `kept` holds the rows that an earlier process has received; a row cut off by a crash is dropped.

    Parameters
    ----------
    path : where rows are kept; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.kept: Array = np.zeros((0, 0), np.float32)
        if path is None or not path.exists():
            return
        rows = read_rows(path)
        if rows is not None:
            self.kept = rows
        with path.open("r+b") as file:
            file.truncate(HEADER_BYTES + rows.nbytes if rows is not None else 0)

    def append(self, rows: Array, *, first: bool) -> None:
        """Add rows; the `first` ones bring the header."""
        if self.path is not None:
            header = np.array(rows.shape[1], "<i8").tobytes() if first else b""
            append_bytes(self.path, header + rows.astype("<f4").tobytes())

    def check(self) -> None:
        """Raise a RunError if what was kept are not probabilities."""
        problem = problem_of(self.kept) if len(self.kept) else None
        if problem is not None:
            raise RunError(
                f"{self.path} is damaged: {problem}; start a new run, or remove the file and the "
                "answers in it."
            )

    @property
    def has_rows(self) -> bool:
        """Whether anything is on disk that a resumed pass would use."""
        return self.path is not None and self.path.exists() and self.path.stat().st_size > 0

    def remove(self) -> None:
        """Delete the file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


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
    """The complete rows of an answer file, or None if there are none; the file is not changed."""
    data = path.read_bytes() if path.is_file() else b""
    classes = int(np.frombuffer(data[:HEADER_BYTES], "<i8")[0]) if len(data) >= HEADER_BYTES else 0
    rows = (len(data) - HEADER_BYTES) // (4 * classes) if classes > 0 else 0
    if not rows:
        return None
    return np.frombuffer(data, "<f4", rows * classes, HEADER_BYTES).reshape(rows, classes).copy()

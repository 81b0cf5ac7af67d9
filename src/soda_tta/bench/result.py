"""What the bench measures of a cell: accuracy, queries, and the protocol card."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np

from soda_tta.bench.cell import Cell
from soda_tta.errors import RunError
from soda_tta.types import Array

REQUIRED = ("before", "after", "queries_per_image")  # every table shows these


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The measurements of one cell. Accuracies are in per cent.

    Parameters
    ----------
    before : accuracy of the deployed model.
    after : accuracy of the method.
    queries_per_image : answered queries divided by the number of images.
    queries : number of queries by purpose (default none).
    correct : which images are classified correctly, "before" and "after", as hexadecimal bits: the
        first image is the highest bit, and the last byte is filled up with zeros. None (default)
        if it was not recorded.
    stopped : "finished" (default), or "budget" if the budget ended the method.
    adaptor : description of the adaptor, or None (default) if it was not recorded.
    verdict : the verdict of the method, or None (default) if it gives none.
    seconds : wall-clock time (default 0).
    notices : warnings of the run (default none).
    losses : mean loss of every epoch (default none).
    curve : one dictionary per measured epoch with "epoch", "queries", "loss", "lr" and "accuracy".
    card : the protocol card of the run.
    code : hash of the file of the user's own method; None (default) for a built-in method.

    Examples
    --------
    >>> result = CellResult(before=20.0, after=60.0, queries_per_image=902.0)
    >>> CellResult.from_facts(result.facts()) == result
    True
    """

    before: float
    after: float
    queries_per_image: float
    queries: dict[str, int] = field(default_factory=dict)
    correct: dict[str, str] | None = None
    stopped: str = "finished"
    adaptor: str | None = None
    verdict: dict[str, Any] | None = None
    seconds: float = 0.0
    notices: list[str] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    curve: list[dict[str, float]] = field(default_factory=list)
    card: dict[str, Any] = field(default_factory=dict)
    code: str | None = None

    def facts(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return asdict(self)

    @staticmethod
    def from_facts(facts: dict[str, Any]) -> CellResult:
        """Read the result from a JSON object; raises `RunError` for anything else."""
        if not isinstance(facts, dict):
            raise RunError("a result is a JSON object")
        unknown = sorted(set(facts) - {part.name for part in fields(CellResult)})
        if unknown:
            raise RunError(f"a result has no {', '.join(unknown)}")
        if not all(isinstance(facts.get(name), int | float) for name in REQUIRED):
            raise RunError(f"a result needs the numbers {', '.join(REQUIRED)}")
        return CellResult(**facts)

    def correct_images(
        self, images: int, when: Literal["before", "after"] = "after"
    ) -> Array | None:
        """Which of the cell's images are classified correctly, one Boolean each.

        None if it was not recorded. Two results on the same images can be compared image by image.
        """
        if self.correct is None:
            return None
        packed = np.frombuffer(bytes.fromhex(self.correct[when]), dtype=np.uint8)
        return np.unpackbits(packed, count=images).astype(bool)

    def chosen_curve(self) -> list[dict[str, float]]:
        """The points of the curve at the learning rate that was chosen.

        With lr="auto" the curve also has points of the rates that were dropped.
        """
        chosen = self.card.get("chosen_lr")
        return [point for point in self.curve if chosen is None or point["lr"] == chosen]


Entry = tuple[Cell, CellResult]


def pack_correct(probabilities: Array, labels: Array) -> str:
    """Which images are classified correctly, as hexadecimal bits.

    >>> pack_correct(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]))
    '80'
    """
    return np.packbits(probabilities.argmax(axis=1) == labels).tobytes().hex()

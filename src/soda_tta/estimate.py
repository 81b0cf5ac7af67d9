"""How many answers are right, guessed from the answers alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A label-free estimate of accuracy; shares of 1."""

    accuracy: float
    low: float
    high: float
    method: str
    sentence: str  # what it is, how far to trust it and when it fails
    error: float  # mean absolute error of the method on the benchmark

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def estimate_accuracy(probabilities: Array) -> Estimate:
    """The share of right answers, by mean confidence."""
    if not len(probabilities):
        raise ValueError("there is no answer to estimate from; give at least one row of probabilities.")
    confidence = float(np.asarray(probabilities, np.float64).max(axis=1).mean())
    error = 0.2
    return Estimate(
        accuracy=confidence,
        low=max(0.0, confidence - error),
        high=min(1.0, confidence + error),
        method="mean confidence",
        sentence="Estimated by mean confidence, without labels; shifted images make models over-confident.",
        error=error,
    )

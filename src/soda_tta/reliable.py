"""Which pseudo-labels to trust (paper, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.errors import RecipeError

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Selection:
    """For every image its pseudo-label and whether it is trusted; both in the order of the images."""

    labels: Array
    reliable: Array


@dataclass(frozen=True, kw_only=True)
class Reliable:
    """Trust a pseudo-label above confidence `tau` that is among the floor((1 - rho) n / C) surest of its class."""

    tau: float = 0.9
    rho: float = 0.9

    def __post_init__(self) -> None:
        if not (0 <= self.tau <= 1 and 0 <= self.rho <= 1):
            raise RecipeError(f"tau {self.tau} and rho {self.rho} must lie in [0, 1].")

    def __call__(self, probabilities: Array) -> Selection:
        images, classes = probabilities.shape
        labels, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
        most = int((1 - self.rho) * images / classes + 1e-9)  # 0.1 * 1000 / 10 is 9.999... in binary
        reliable = np.zeros(images, bool)
        for label in range(classes):
            candidates = np.flatnonzero((labels == label) & (confidence > self.tau))
            surest = np.argsort(-confidence[candidates], kind="stable")[:most]  # ties: the earlier image
            reliable[candidates[surest]] = True
        return Selection(labels, reliable)

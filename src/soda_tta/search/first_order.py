"""First-order search: for white boxes, whose gradient is available."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from soda_tta.search.descent import Descent
from soda_tta.search.search import Wants
from soda_tta.search.steps import Rule
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Backprop:
    """The true gradient by back-propagation: one forward and one backward pass per step."""

    candidates: ClassVar[int] = 1  # queries per image and step
    follows_gradient: ClassVar[bool] = True
    probe_length: ClassVar[None] = None

    def start(
        self, theta: Array, *, step: Rule, units: Array | float = 1.0, seed: int = 0
    ) -> BackpropSearch:
        """Begin a search at `theta`."""
        return BackpropSearch(theta, step)


class BackpropSearch(Descent):
    """`ask()` for the one point to differentiate at, `tell(gradient)` to move."""

    wants: ClassVar[Wants] = "gradient"
    adds_known_slope: ClassVar[bool] = False  # it is part of the gradient already

    def ask(self) -> Array:
        """The current point."""
        return self.theta[None]

    def tell(self, values: Any, known_slope: Any = 0.0) -> None:
        """Move against the gradient."""
        self.move(np.asarray(values, np.float64) + known_slope)

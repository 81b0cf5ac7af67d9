"""First-order search: for white boxes, where the gradient itself can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.search.descent import Descent
from soda_tta.search.steps import Rule
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Backprop:
    """The true gradient by back-propagation: one forward and one backward a step."""

    candidates = 1  # queries an image and step

    def start(self, theta: Array, step: Rule, seed: int) -> BackpropSearch:
        return BackpropSearch(self, theta, step)


class BackpropSearch(Descent):
    """`ask()` for the one point to differentiate at, `tell(gradient)` to move."""

    def __init__(self, settings: Backprop, theta: Array, step: Rule) -> None:
        super().__init__(theta, step)
        self.settings = settings

    def ask(self) -> Array:
        return self.theta[None]

    def tell(self, gradient: Any) -> None:
        self.move(np.asarray(gradient, np.float64))

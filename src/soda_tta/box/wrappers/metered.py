"""A box that counts: every query has a purpose and is counted where it is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import check_images
from soda_tta.box.ledger import Ledger
from soda_tta.types import Array


class Metered(Wrapper):
    """Counts every query for one purpose; a query that would exceed the budget is never sent.

    Parameters
    ----------
    box : the model.
    ledger : where queries are counted.
    purpose : what they are spent on.
    responded : called with the purpose and the number of queries after every response.
    """

    def __init__(
        self,
        box: Box,
        ledger: Ledger,
        purpose: str,
        responded: Callable[[str, int], None] = lambda purpose, queries: None,
    ) -> None:
        super().__init__(box)
        self.ledger = ledger
        self.purpose = purpose
        self.responded = responded

    def __call__(self, images: Array) -> Array:
        images = check_images(images)  # what cannot be sent is not billed
        self.ledger.spend(len(images), self.purpose)
        size = self.box.at_once  # a multiple of the batch: the requests stay the same
        starts = range(0, max(1, len(images)), size)
        return np.concatenate([self._send(images[start : start + size]) for start in starts])

    def _send(self, images: Array) -> Array:
        probabilities = self.box(images)
        self.responded(self.purpose, len(images))
        return probabilities

    def differentiable(self, images: Any) -> Any:
        self.ledger.spend(len(images), self.purpose)
        return self.box.differentiable(images)

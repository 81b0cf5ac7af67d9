"""Every query has a purpose and is counted where it is spent."""

from __future__ import annotations

import threading
from typing import Any

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import Array, check_images
from soda_tta.errors import BudgetError

PURPOSES = ("select", "tune", "probe", "evaluate", "serve")


class Ledger:
    """Queries by purpose, under one hard limit.

    >>> ledger = Ledger(limit=10)
    >>> ledger.spend(8, "probe"); ledger.left
    2
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.queries: dict[str, int] = {}
        self._lock = threading.Lock()

    def spend(self, queries: int, purpose: str) -> None:
        """Write down queries about to be asked; refuse them all if even one would exceed the limit."""
        if queries < 0:
            raise ValueError(f"{queries} queries cannot be spent.")
        with self._lock:
            if self.left is not None and queries > self.left:
                raise BudgetError(
                    f"{queries} more queries ({purpose}) would exceed the limit of {self.limit}; "
                    f"{self.total} are spent. Raise the budget."
                )
            self.queries[purpose] = self.queries.get(purpose, 0) + queries

    @property
    def total(self) -> int:
        return sum(self.queries.values())

    @property
    def left(self) -> int | None:
        return None if self.limit is None else self.limit - self.total

    def __repr__(self) -> str:
        spent = ", ".join(f"{purpose} {count:,}" for purpose, count in self.queries.items())
        return f"Ledger({self.total:,} queries: {spent or 'none'})"


class Metered(Wrapper):
    """Counts every query by purpose, and refuses the one that would exceed the budget before it is asked."""

    def __init__(self, box: Box, ledger: Ledger, purpose: str) -> None:
        super().__init__(box)
        self.ledger, self.purpose = ledger, purpose

    def __call__(self, images: Array) -> Array:
        images = check_images(images)  # what cannot be asked is not paid for
        self.ledger.spend(len(images), self.purpose)
        return self.box(images)

    def differentiable(self, images: Any) -> Any:
        self.ledger.spend(len(images), self.purpose)
        return self.box.differentiable(images)

"""Every query has a purpose and is counted where it is spent."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import check_images
from soda_tta.errors import BudgetError
from soda_tta.storage.atomic import append_bytes
from soda_tta.types import Array


class Ledger:
    """Queries by purpose, under one hard limit.

    With a `book`, every spending is written to that file before it is asked. A process that continues a killed one
    finds it there as `lost` and recovers what it still has the answers of; what stays lost counts against the limit.

    >>> ledger = Ledger(limit=10)
    >>> ledger.spend(8, "probe"); ledger.left
    2
    """

    def __init__(self, limit: int | None = None, book: Path | None = None) -> None:
        self.limit, self.book = limit, book
        self.queries: dict[str, int] = {}
        self.lost = sum_of_book(book) if book is not None and book.exists() else 0
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
            if self.book is not None and queries:
                append_bytes(self.book, f"{purpose} {queries}\n".encode())
            self.queries[purpose] = self.queries.get(purpose, 0) + queries

    def recover(self, queries: int, purpose: str) -> None:
        """Queries an earlier process paid and whose answers are kept: no longer lost, and not spent again."""
        with self._lock:
            self.lost = max(0, self.lost - queries)  # without a book nothing is known to be lost
            self.queries[purpose] = self.queries.get(purpose, 0) + queries

    @property
    def answered(self) -> int:
        """Queries whose answers were used; a killed run that goes on has them as an unbroken one has."""
        return sum(self.queries.values())

    @property
    def total(self) -> int:
        return self.answered + self.lost

    @property
    def left(self) -> int | None:
        return None if self.limit is None else self.limit - self.total

    def by_purpose(self) -> dict[str, int]:
        """Queries by purpose; those paid for answers that never arrived, if any, as `lost`."""
        return {**self.queries, **({"lost": self.lost} if self.lost else {})}

    def __repr__(self) -> str:
        spent = ", ".join(f"{purpose} {count:,}" for purpose, count in self.by_purpose().items())
        return f"Ledger({self.total:,} queries: {spent or 'none'})"


def sum_of_book(book: Path) -> int:
    """Everything written down; a line torn by a kill was never asked."""
    whole = book.read_bytes()
    lines = whole[: whole.rfind(b"\n") + 1].decode().splitlines()
    return sum(int(line.split()[1]) for line in lines)


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

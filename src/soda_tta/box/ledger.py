"""The ledger: queries by purpose, under one hard limit."""

from __future__ import annotations

import threading

from soda_tta.errors import BudgetError
from soda_tta.storage.book import Book


class Ledger:
    """Counts queries by purpose and refuses those that would exceed the limit.

    With a book, every query is written to a file before it is sent. A process that resumes a killed
    one finds the earlier queries there as `lost`, and recovers those whose responses it still has.
    Queries that stay lost were billed, so they count against the limit.

    Parameters
    ----------
    limit : the most queries that may be spent, all purposes together; None for no limit.
    book : where queries are written down; None keeps them in memory only.

    Examples
    --------
    >>> ledger = Ledger(limit=10)
    >>> ledger.spend(8, "probe")
    >>> ledger.left
    2
    """

    def __init__(self, limit: int | None = None, book: Book | None = None) -> None:
        self.limit = limit
        self.book = book or Book(None)
        self.queries: dict[str, int] = {}
        self.lost = self.book.total()
        self._lock = threading.Lock()

    def spend(self, queries: int, purpose: str) -> None:
        """Write down queries about to be sent; refuse all of them if one would exceed the limit."""
        if queries < 0:
            raise ValueError(f"{queries} queries cannot be spent.")
        with self._lock:
            if self.left is not None and queries > self.left:
                raise BudgetError(
                    f"{queries} more queries ({purpose}) would exceed the limit of {self.limit}; "
                    f"{self.total} are spent. Raise the budget."
                )
            self.book.append(purpose, queries)
            self.queries[purpose] = self.queries.get(purpose, 0) + queries

    def recover(self, queries: int, purpose: str) -> None:
        """Count queries of an earlier process whose responses are stored: they are not lost."""
        with self._lock:
            self.lost = max(0, self.lost - queries)  # without a book nothing is known to be lost
            self.queries[purpose] = self.queries.get(purpose, 0) + queries

    @property
    def answered(self) -> int:
        """Queries whose responses were used; a resumed run counts them as an unbroken one does."""
        return sum(self.queries.values())

    @property
    def total(self) -> int:
        """All queries that were billed."""
        return self.answered + self.lost

    @property
    def left(self) -> int | None:
        """Queries within the limit; None if there is no limit."""
        return None if self.limit is None else self.limit - self.total

    def by_purpose(self) -> dict[str, int]:
        """Queries by purpose; those billed whose responses never arrived, if any, as `lost`."""
        return {**self.queries, **({"lost": self.lost} if self.lost else {})}

    def __repr__(self) -> str:
        parts = [f"{purpose} {count:,}" for purpose, count in self.by_purpose().items()]
        return f"Ledger({self.total:,} queries: {', '.join(parts) or 'none'})"

"""The ledger: queries by purpose, under one hard limit."""

from __future__ import annotations

import threading

from soda_tta.errors import BudgetError
from soda_tta.storage.book import Book

RETRIED = "retried"
HEDGED = "hedged"


class Ledger:
    """Counts queries by purpose and refuses those that would exceed the limit.

    With a book, every query is written to a file before it is sent. A process that resumes a killed
    one finds the earlier queries there as `lost`, and recovers those whose responses it still has.
    Queries that stay lost, those that were sent in vain and then `retried`, and those that were
    `hedged` (sent to a second server because the first took long) may have been billed, so they
    count against the limit.

    Parameters
    ----------
    limit : the most queries that may be spent, all purposes together; None for no limit.
    book : where queries are written down; None keeps them in memory only.
    margin : queries within the limit that plans leave for requests without a response.

    Examples
    --------
    >>> ledger = Ledger(limit=10)
    >>> ledger.spend(8, "probe")
    >>> ledger.left
    2
    """

    def __init__(
        self, limit: int | None = None, book: Book | None = None, *, margin: int = 0
    ) -> None:
        self.limit = limit
        self.margin = margin
        self.book = book or Book(None)
        self.queries: dict[str, int] = {}
        earlier = self.book.opened()
        self.calls = self.book.calls()  # requests that were, or may have been, billed
        self.retried = earlier.pop(RETRIED, 0)
        self.hedged = earlier.pop(HEDGED, 0)
        self.lost = sum(earlier.values())
        self._lock = threading.Lock()

    def spend(self, queries: int, purpose: str, *, calls: int = 1) -> None:
        """Write down queries about to be sent; refuse all of them if one would exceed the limit.

        Parameters
        ----------
        queries : images.
        purpose : what they are spent on.
        calls : the requests they are sent in.
        """
        if queries < 0:
            raise ValueError(f"{queries} queries cannot be spent.")
        with self._lock:
            self._check(queries, purpose)
            self.book.append(purpose, queries)
            self.queries[purpose] = self.queries.get(purpose, 0) + queries
            self.calls += calls if queries else 0

    def check(self, queries: int, purpose: str) -> None:
        """Refuse queries that would exceed the limit, without counting them."""
        with self._lock:
            self._check(queries, purpose)

    def _check(self, queries: int, purpose: str) -> None:
        if self.left is None or queries <= self.left:
            return
        in_vain = f" ({self.wasted} of them without a response)" if self.wasted else ""
        raise BudgetError(
            f"{queries} more queries ({purpose}) would exceed the limit of {self.limit}; "
            f"{self.total} are spent{in_vain}. Raise the budget."
        )

    def unanswered(self, queries: int, purpose: str, *, sent: bool, calls: int = 1) -> None:
        """Count queries that got no response: as retried if they were sent, else not at all."""
        with self._lock:
            self.book.take_back(purpose, queries, instead=RETRIED if sent else None)
            self.queries[purpose] = self.queries.get(purpose, 0) - queries
            if not self.queries[purpose]:
                del self.queries[purpose]
            self.retried += queries if sent else 0
            self.calls -= 0 if sent else calls

    def hedge(self, queries: int) -> bool:
        """Count queries that are sent a second time; False, and not counted, if that is too much.

        Under a limit, hedges get half of the margin: never a query that a plan relies on, and the
        other half is left for retries.
        """
        with self._lock:
            if self.left is not None:
                most = min(self.left, self.margin // 2 - self.wasted)
                if queries > most:
                    return False
            self.book.append(HEDGED, queries)
            self.hedged += queries
            self.calls += 1
            return True

    def unhedge(self, queries: int) -> None:
        """Take back a hedge: the request, or the one it was meant to replace, was never sent."""
        with self._lock:
            self.book.take_back(HEDGED, queries, instead=None)
            self.hedged -= queries
            self.calls -= 1

    def recover(self, queries: int, purpose: str) -> None:
        """Count queries of an earlier process whose responses are stored: they are not lost."""
        if not queries:
            return
        with self._lock:
            self.lost = max(0, self.lost - queries)  # without a book nothing is known to be lost
            self.queries[purpose] = self.queries.get(purpose, 0) + queries

    @property
    def answered(self) -> int:
        """Queries whose responses were used; a resumed run counts them as an unbroken one does."""
        return sum(self.queries.values())

    @property
    def wasted(self) -> int:
        """Queries that may have been billed and whose responses never arrived, or not in time."""
        return self.lost + self.retried + self.hedged

    @property
    def total(self) -> int:
        """All queries that were, or may have been, billed."""
        return self.answered + self.wasted

    @property
    def left(self) -> int | None:
        """Queries within the limit; None if there is no limit."""
        return None if self.limit is None else self.limit - self.total

    def by_purpose(self) -> dict[str, int]:
        """Queries by purpose; those without a response of use as `retried`, `hedged`, `lost`."""
        without = {RETRIED: self.retried, HEDGED: self.hedged, "lost": self.lost}
        return {**self.queries, **{name: count for name, count in without.items() if count}}

    def __repr__(self) -> str:
        parts = [f"{purpose} {count:,}" for purpose, count in self.by_purpose().items()]
        return f"Ledger({self.total:,} queries: {', '.join(parts) or 'none'})"

"""The meter: a model, its ledger and its transcript together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy

from soda_tta.box.box import Box, Responded, Waiting, not_counted, not_shown
from soda_tta.box.ledger import Ledger
from soda_tta.box.wrappers.asked import Asked, together
from soda_tta.storage.transcript import Transcript
from soda_tta.types import Array, Purpose


class Meter:
    """Hands out the model for one purpose at a time: counted, within the budget, recorded.

    Parameters
    ----------
    box : the deployed model.
    ledger : where queries are counted; by default a new one without a limit.
    transcript : where responses are recorded, so that a killed run replays them; None records
        nothing.
    waiting : receives the waits before retries: seconds and reason, from any thread.
    aside : queries within the ledger's limit that are not for the method.

    Examples
    --------
    >>> import numpy as np
    >>> from soda_tta.box import load_box
    >>> meter = Meter(load_box(lambda images: np.full((len(images), 2), 0.5)))
    >>> meter.asking("probe")(np.zeros((4, 3, 8, 8), np.float32)).shape
    (4, 2)
    >>> meter.ledger
    Ledger(4 queries: probe 4)
    """

    def __init__(
        self,
        box: Box,
        ledger: Ledger | None = None,
        transcript: Transcript | None = None,
        waiting: Waiting = not_shown,
        aside: int = 0,
    ) -> None:
        self.box = box
        self.ledger = ledger or Ledger()
        self.transcript = transcript
        self.waiting = waiting
        self.responded: Responded = not_counted  # called after every response
        self.hard_limit = self.ledger.limit
        self.aside = aside

    def asking(self, purpose: Purpose) -> Asked:
        """The model for one purpose."""
        return Asked(self.box, self.ledger, purpose, self.transcript, self.waiting, self.responded)

    def each(self, pieces: Iterable[tuple[Purpose, Array]], *purposes: Purpose) -> Iterator[Array]:
        """The responses to several pieces of images, in order, each for one of these purposes.

        The next piece is taken while requests are in flight, whatever its purpose.
        """
        boxes = {purpose: self.asking(purpose) for purpose in purposes}
        return together(
            list(boxes.values()), ((boxes[purpose], images) for purpose, images in pieces)
        )

    def recording(self, transcript: Transcript | None) -> Meter:
        """The same with another transcript."""
        meter = copy(self)
        meter.transcript = transcript
        return meter

    def unrecorded(self) -> Meter:
        """The same without a transcript, for callers that keep their own responses."""
        return self.recording(None)

    def spend(self, queries: int, purpose: Purpose) -> None:
        """Count passes through a copy of the model that a method makes itself."""
        self.ledger.spend(queries, purpose)

    def recover(self, queries: int, purpose: Purpose) -> None:
        """Count queries of an earlier process whose responses are stored."""
        self.ledger.recover(queries, purpose)

    def set_limit(self, limit: int | None) -> None:
        """Change the limit; that of a stream grows with every image that arrives."""
        if limit is not None and self.ledger.margin and self.hard_limit is not None:
            limit = min(self.hard_limit, limit + self.ledger.margin)
        self.ledger.limit = limit

    @property
    def limit(self) -> int | None:
        """The most queries to plan with: the hard limit without its margin and what is aside."""
        limit = self.ledger.limit
        return None if limit is None else limit - self.ledger.margin - self.aside

    @property
    def left(self) -> int | None:
        """Queries to plan with. Queries without a response reduce it only beyond the margin.

        While a transcript is replayed: as it was when the next query was decided on.
        """
        ledger = self.ledger
        if ledger.limit is None:
            return None
        wasted = ledger.wasted
        if self.transcript is not None:
            wasted = self.transcript.wasted_then(wasted)
        planned = ledger.limit - ledger.margin  # what is aside was spent before, and is answered
        return planned - ledger.answered - max(0, wasted - ledger.margin)

    @property
    def has_lost_queries(self) -> bool:
        """Whether queries may have been billed whose responses never arrived."""
        return self.ledger.wasted > 0

    def forget(self) -> None:
        """Forget the recorded responses: what came of them is kept elsewhere."""
        if self.transcript is not None:
            self.transcript.clear()

    def close(self) -> None:
        """Record that the method has asked its last query."""
        if self.transcript is not None:
            self.transcript.end(self.ledger.wasted)

"""The meter: a model, its ledger and its transcript together."""

from __future__ import annotations

from soda_tta.box.box import Box
from soda_tta.box.ledger import Ledger
from soda_tta.box.wrappers.metered import Metered
from soda_tta.box.wrappers.recorded import Recorded
from soda_tta.storage.transcript import Transcript
from soda_tta.types import Purpose


class Meter:
    """Hands out the model for one purpose at a time: counted, within the budget, recorded.

    Parameters
    ----------
    box : the deployed model.
    ledger : where queries are counted; by default a new one without a limit.
    transcript : where responses are recorded, so that a killed run replays them; None records
        nothing.
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
        aside: int = 0,
    ) -> None:
        self.box = box
        self.ledger = ledger or Ledger()
        self.transcript = transcript
        self.aside = aside

    def asking(self, purpose: Purpose) -> Box:
        """The model for one purpose."""
        metered = Metered(self.box, self.ledger, purpose)
        return metered if self.transcript is None else Recorded(metered, self.transcript)

    def unrecorded(self) -> Meter:
        """The same without a transcript, for callers that keep their own responses."""
        return Meter(self.box, self.ledger)

    def spend(self, queries: int, purpose: Purpose) -> None:
        """Count passes through a copy of the model that a method makes itself."""
        self.ledger.spend(queries, purpose)

    def recover(self, queries: int, purpose: Purpose) -> None:
        """Count queries of an earlier process whose responses are stored."""
        self.ledger.recover(queries, purpose)

    def set_limit(self, limit: int | None) -> None:
        """Change the limit; that of a stream grows with every image that arrives."""
        self.ledger.limit = limit

    @property
    def limit(self) -> int | None:
        """The most queries that may be spent on the images."""
        return None if self.ledger.limit is None else self.ledger.limit - self.aside

    @property
    def left(self) -> int | None:
        """Queries within the limit.

        While a transcript is replayed: as it was when the next recorded response was received.
        """
        left = self.ledger.left
        if left is None or self.transcript is None:
            return left
        lost = self.ledger.lost
        return left + lost - self.transcript.lost_then(lost)

    @property
    def has_lost_queries(self) -> bool:
        """Whether queries were billed whose responses never arrived."""
        return self.ledger.lost > 0

    def close(self) -> None:
        """Record that the method has asked its last query."""
        if self.transcript is not None:
            self.transcript.end(self.ledger.lost)

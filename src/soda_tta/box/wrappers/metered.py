"""A box that counts: every query has a purpose and is counted where it is spent."""

from __future__ import annotations

from typing import Any

from soda_tta.box.box import Box, Responded, Wrapper, not_counted
from soda_tta.box.input import check_images
from soda_tta.box.ledger import Ledger
from soda_tta.errors import BoxUnavailable
from soda_tta.types import Array


class Metered(Wrapper):
    """Counts every query for one purpose; a query that would exceed the budget is never sent.

    Inside `Retrying`, it counts every attempt: one that may have reached the model as `retried`.

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
        responded: Responded = not_counted,
    ) -> None:
        super().__init__(box.charging(ledger))
        self.ledger = ledger
        self.purpose = purpose
        self.responded = responded

    def __call__(self, images: Array) -> Array:
        images = check_images(images)  # what cannot be sent is not billed
        calls = self.box.requests(len(images))
        self.ledger.spend(len(images), self.purpose, calls=calls)
        try:
            probabilities = self.box(images)
        except BoxUnavailable as error:
            self.ledger.unanswered(len(images), self.purpose, sent=error.sent, calls=calls)
            raise
        self.responded(self.purpose, len(images))
        return probabilities

    def differentiable(self, images: Any) -> Any:
        self.ledger.spend(len(images), self.purpose)
        return self.box.differentiable(images)

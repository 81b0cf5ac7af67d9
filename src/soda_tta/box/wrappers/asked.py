"""The deployed model for one purpose: counted, within the budget, recorded request by request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from soda_tta.box.box import (
    Box,
    Received,
    Responded,
    Waiting,
    Wrapper,
    not_counted,
    not_kept,
    not_shown,
)
from soda_tta.box.input import check_images
from soda_tta.box.ledger import Ledger
from soda_tta.box.wrappers.batched import Batched
from soda_tta.box.wrappers.metered import Metered
from soda_tta.box.wrappers.recorded import Recorded
from soda_tta.storage.transcript import Transcript
from soda_tta.types import Array, Purpose


class Asked(Wrapper):
    """A query is split into requests (`Batched`), each of which is recorded when it is answered
    (`Recorded`) and counted each time it is sent (`Metered`, inside the retries of the box).

    Parameters
    ----------
    box : the model.
    ledger : where queries are counted. If plans leave a margin, no more images are in flight.
    purpose : what they are spent on.
    transcript : where responses are recorded; None records nothing.
    waiting : receives the waits before retries.
    responded : receives the purpose and the number of queries after every response.
    """

    box: Batched

    def __init__(
        self,
        box: Box,
        ledger: Ledger,
        purpose: Purpose,
        transcript: Transcript | None = None,
        waiting: Waiting = not_shown,
        responded: Responded = not_counted,
    ) -> None:
        metered = box.around_attempts(
            lambda inner: Metered(inner, ledger, purpose, responded), waiting
        )
        if not isinstance(metered, Batched):
            metered = Batched(metered, batch=metered.at_once, workers=1)
        if ledger.margin:
            metered = metered.limited(ledger.margin)
        self.recorded: Recorded | None = None
        if transcript is not None:
            self.recorded = Recorded(metered.box, ledger, purpose, transcript)
            metered = metered.around_requests(lambda inner: self.recorded or inner)
        super().__init__(metered)
        self.ledger = ledger
        self.purpose = purpose

    def _begin(self) -> bool:
        """Begin the next query; returns whether anything of it is recorded."""
        return self.recorded is not None and self.recorded.begin()

    def __call__(self, images: Array) -> Array:
        images = check_images(images)
        if not self._begin():
            self.ledger.check(len(images), self.purpose)  # nothing is sent of what is too much
        return self.box(images)

    def each(self, pieces: Iterable[Array], received: Received = not_kept) -> Iterator[Array]:
        self._begin()
        return self.box.each(pieces, received)


def together(boxes: Sequence[Asked], pieces: Iterable[tuple[Asked, Array]]) -> Iterator[Array]:
    """The responses to pieces for several purposes, in order, with all workers busy between them.

    Parameters
    ----------
    boxes : one model for each purpose; the query of each begins in this order.
    pieces : which of these boxes a piece is for, and its images.
    """
    for asked in boxes:
        asked._begin()
    return boxes[0].box.together((asked.box, piece) for asked, piece in pieces)

"""A pass over all images: each is sent once, responses are kept, and a stop loses nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Meter
from soda_tta.data import Images
from soda_tta.engine.events import Answered, Listener, Notice
from soda_tta.engine.work import Interrupted
from soda_tta.storage.answers import AnswerFile
from soda_tta.types import Array, Purpose

UNREACHED = (
    "images keep their unadapted answers: lost requests used up the budget. "
    "`apply` answers them with this adaptor."
)


class Pass:
    """One pass over all images.

    Parameters
    ----------
    images : the images.
    adaptor : what changes them first.
    meter : the model.
    purpose : what the queries are counted as.
    file : where responses are kept; rows of an earlier process are not asked for again.
    listener : receives the progress.
    stop : asked after every piece.
    fallback : the rows to use for images that the budget no longer covers, after lost requests
        have used it up; None raises BudgetError there.
    known : rows that were received already; rows of NaN were not.
    """

    def __init__(
        self,
        images: Images,
        adaptor: Adaptor,
        meter: Meter,
        purpose: Purpose,
        file: AnswerFile,
        *,
        listener: Listener = lambda event: None,
        stop: Callable[[], bool] = lambda: False,
        fallback: Array | None = None,
        known: Array | None = None,
    ) -> None:
        self.images = images
        self.adaptor = adaptor
        self.meter = meter.unrecorded()  # the file keeps the responses
        self.purpose = purpose
        self.box = self.meter.asking(purpose)
        self.file = file
        file.check()
        self.listener = listener
        self.stop = stop
        self.fallback = fallback
        self.known = known
        self.wanted: Array = np.full(len(images), True)
        if known is not None:
            self.wanted = np.isnan(known[:, 0])
        self.rows: list[Array] = []  # pieces in order
        self.unreached = 0  # images that the budget did not cover
        if len(file.kept):
            self.rows.append(file.kept)
        self.meter.recover(int(self.wanted[: len(file.kept)].sum()), purpose)

    @property
    def done(self) -> int:
        """Images answered so far."""
        return sum(len(rows) for rows in self.rows)

    def run(self) -> Array:
        """Answer every image; raises Interrupted if the user asks to stop."""
        while self.done < len(self.images):
            if not self._answer_piece():
                break
            self.listener(Answered(self.purpose, self.done, len(self.images)))
            if self.done < len(self.images) and self.stop():
                raise Interrupted
        return np.concatenate(self.rows)

    def so_far(self) -> Array:
        """The rows received so far; those of the other images are NaN."""
        classes = self.rows[0].shape[1] if self.rows else 0
        rest = np.full((len(self.images) - self.done, classes), np.nan, np.float32)
        return np.concatenate([*self.rows, rest])

    def _answer_piece(self) -> bool:
        """Answer the next piece; False if the budget covers no image of it."""
        start = self.done
        size = min(self.images.at_once, self.box.at_once)
        # Pieces end at multiples of the size: a resumed pass sends the same groups of images.
        end = min(start - start % size + size, len(self.images))
        to_send = start + np.flatnonzero(self.wanted[start:end])
        affordable = len(to_send) if self.meter.left is None else max(0, self.meter.left)
        if self.fallback is not None and affordable < len(to_send):
            if not affordable:
                self._use_fallback(start)
                return False
            end = int(to_send[affordable])  # up to the first image that is not covered
            to_send = to_send[:affordable]
        rows = self._rows(slice(start, end), to_send)
        self.file.append(rows, first=start == 0)
        self.rows.append(rows)
        return True

    def _rows(self, place: slice, to_send: Array) -> Array:
        if self.known is None:  # then all of them are sent
            return self.box(self.adaptor(self.images[place]))
        rows: Array = self.known[place].copy()
        if len(to_send):
            rows[to_send - place.start] = self.box(self.adaptor(self.images[to_send]))
        return rows

    def _use_fallback(self, start: int) -> None:
        assert self.fallback is not None
        rows = self.fallback
        if self.known is not None:
            rows = np.where(self.wanted[:, None], rows, self.known)
        self.rows.append(rows[start:])
        self.unreached = int(self.wanted[start:].sum())
        self.listener(Notice(f"{self.unreached:,} {UNREACHED}"))

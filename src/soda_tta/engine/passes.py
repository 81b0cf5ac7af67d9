"""A pass over all images: each is sent once, responses are kept, and a stop loses nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from soda_tta.adaptors import Adaptor, RoutedAdaptor
from soda_tta.adaptors.answering import VIEWS
from soda_tta.box import Meter
from soda_tta.conditions.router import Routes
from soda_tta.data import Images
from soda_tta.engine.events import Answered, Listener, Notice
from soda_tta.engine.work import Interrupted
from soda_tta.errors import BudgetError
from soda_tta.storage.answers import AnswerFile
from soda_tta.types import Array, Purpose

UNREACHED = (
    "images keep their unadapted answers: lost requests used up the budget. "
    "`apply` answers them with this adaptor."
)
UNREACHED_VIEW = "images are answered without a further view: lost requests used up the budget."


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
    view : sends this view of the adapted images instead (`adaptors/answering.py`).
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
        view: str | None = None,
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
        self.view = view
        self.wanted: Array = np.full(len(images), True)
        if known is not None:
            self.wanted = np.isnan(known[:, 0])
        self.unreached = 0  # images that the budget did not cover
        self.known_routes = KnownRoutes(len(images))
        kept = file.kept[: len(images)]
        self.rows: Array | None = kept_rows(kept, known, len(images))
        if len(kept):
            self.meter.recover(
                int((self.wanted[: len(kept)] & ~np.isnan(kept[:, 0])).sum()), purpose
            )

    @property
    def _missing(self) -> Array:
        """Places of the images that have no row yet."""
        if self.rows is None:
            return np.arange(len(self.images))
        return np.flatnonzero(np.isnan(self.rows[:, 0]))

    @property
    def done(self) -> int:
        """Images answered so far."""
        return len(self.images) - len(self._missing)

    def run(self) -> Array:
        """Answer every image; raises Interrupted if the user asks to stop."""
        while len(self._missing):
            affordable = self._affordable()
            if not len(affordable):
                self._use_fallback()
                break
            try:
                self._answer(affordable)
            except BudgetError:
                if self.fallback is None:
                    raise
                # Retries have used some of the budget: continue with what is left.
        assert self.rows is not None
        return self.rows

    def so_far(self) -> Array:
        """The rows received so far; those of the other images are NaN."""
        if self.rows is None:
            return np.zeros((len(self.images), 0), np.float32)
        return self.rows

    def _affordable(self) -> Array:
        """Places of the missing images that the budget covers; all of them without a fallback."""
        missing = self._missing
        left = self.meter.ledger.left
        if self.fallback is None or left is None:
            return missing
        return missing[: max(0, left)]

    def _answer(self, places: Array) -> None:
        """Answer the images at these places, in pieces that end at multiples of a size.

        A resumed pass therefore sends the same groups of images.
        """
        size = min(self.images.at_once, self.box.at_once)
        pieces = np.split(places, np.flatnonzero(np.diff(places // size)) + 1)

        def keep(number: int, place: slice, rows: Array) -> None:
            self.file.write(pieces[number][place], rows)

        prepared = (self._adapted(piece) for piece in pieces)
        for piece, rows in zip(pieces, self.box.each(prepared, keep), strict=True):
            if self.rows is None:
                self.rows = np.full((len(self.images), rows.shape[1]), np.nan, np.float32)
            self.rows[piece] = rows
            self.listener(Answered(self.purpose, self.done, len(self.images)))
            if len(self._missing) and self.stop():
                raise Interrupted

    def _adapted(self, places: Array) -> Array:
        """The images at these places as they are sent; their conditions are noted on the way."""
        images = self.images[as_slice(places)]
        if not isinstance(self.adaptor, RoutedAdaptor):
            return self._viewed(self.adaptor(images))
        adapted, routes = self.adaptor.routed(images)
        self.known_routes.note(places, routes)
        return self._viewed(adapted)

    def _viewed(self, adapted: Array) -> Array:
        return adapted if self.view is None else VIEWS[self.view](adapted)

    def all_routes(self) -> Routes | None:
        """The condition of every image; None if the adaptor knows no conditions."""
        if not isinstance(self.adaptor, RoutedAdaptor):
            return None
        size = self.images.at_once
        missing = self.known_routes.missing  # answered by an earlier process
        for start in range(0, len(missing), size):
            places = missing[start : start + size]
            self.known_routes.note(places, self.adaptor.routes(self.images[places]))
        return self.known_routes.routes

    def _use_fallback(self) -> None:
        assert self.fallback is not None
        missing = self._missing
        if self.rows is None:
            self.rows = np.full(self.fallback.shape, np.nan, np.float32)
        self.rows[missing] = self.fallback[missing]
        self.unreached = len(missing)
        text = UNREACHED if self.view is None else UNREACHED_VIEW
        self.listener(Notice(f"{self.unreached:,} {text}"))


class KnownRoutes:
    """The conditions of images, as far as they are known."""

    def __init__(self, count: int) -> None:
        self.routes = Routes(np.full(count, -1), np.full(count, np.nan), np.zeros(count, bool))

    @property
    def missing(self) -> Array:
        """Places of images whose condition is not known."""
        return np.flatnonzero(self.routes.conditions < 0)

    def note(self, places: Array, routes: Routes) -> None:
        """Keep the routes of some images."""
        for known, new in zip(self.routes, routes, strict=True):
            known[places] = new


def kept_rows(kept: Array, known: Array | None, count: int) -> Array | None:
    """The rows that need not be asked for, NaN elsewhere; None if there are none."""
    if known is None and not len(kept):
        return None
    if known is None:
        rows: Array = np.full((count, kept.shape[1]), np.nan, np.float32)
    else:
        rows = known.copy()
    if len(kept):
        received = np.flatnonzero(~np.isnan(kept[:, 0]))
        rows[received] = kept[received]
    return rows


def as_slice(places: Array) -> Array | slice:
    """Places without a gap as a slice, which reads faster."""
    if places[-1] - places[0] + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places

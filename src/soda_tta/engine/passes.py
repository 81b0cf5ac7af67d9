"""A pass over all images: each is asked about once, what is paid is kept, and a stop loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Metered
from soda_tta.data import Images
from soda_tta.engine.events import Answered, Listener, Notice
from soda_tta.storage.journal import AnswerFile
from soda_tta.types import Array

# What is left of a budget goes to some images; whoever wants the rest answered pays one query for each of them.
UNREACHED = "keep their unadapted answers: lost requests ate the budget; soda-tta apply answers them by this adaptor."


class Stopped(Exception):
    """The user asked to stop in the middle of a pass; its answers so far are on disk."""


def answer_all(
    images: Images,
    adaptor: Adaptor,
    box: Metered,
    path: Path | None,
    stop: Callable[[], bool],
    tell: Listener,
    otherwise: Array | None = None,
    known: Array | None = None,
) -> Array:
    """Every image once; what an earlier process has left in `path` is read back, and so are `known` rows (no NaN).

    If requests lost in a kill have eaten into the budget, the images it no longer reaches for are given `otherwise`.
    """
    file, piece = AnswerFile(path), min(images.at_once, box.at_once)
    wanted: Array = np.full(len(images), True)
    if known is not None:
        wanted = np.isnan(known[:, 0])
    box.ledger.recover(int(wanted[: len(file.kept)].sum()), box.purpose)
    pieces = [file.kept] if len(file.kept) else []
    start = len(file.kept)
    while start < len(images):
        # pieces end at multiples, so that a resumed pass asks in the same groups as an unbroken one
        place = slice(start, min(start - start % piece + piece, len(images)))
        asked = start + np.flatnonzero(wanted[place])
        left = len(asked) if box.ledger.left is None else max(0, box.ledger.left)
        if otherwise is not None and left < len(asked):
            if not left:
                rows = otherwise if known is None else np.where(wanted[:, None], otherwise, known)
                pieces.append(rows[start:])
                unreached = int(wanted[start:].sum())
                tell(Notice(f"{unreached:,} images {UNREACHED}", unreached))
                break
            place, asked = (
                slice(start, int(asked[left])),
                asked[:left],
            )  # up to the first that is not reached
        if known is None:
            rows = box(adaptor(images[place]))
        else:
            rows = known[place].copy()
            if len(asked):
                rows[asked - start] = box(adaptor(images[asked]))
        file.append(rows, first=start == 0)
        pieces.append(rows)
        start = place.stop
        tell(Answered(box.purpose, start, len(images)))
        if start < len(images) and stop():
            raise Stopped
    return np.concatenate(pieces)

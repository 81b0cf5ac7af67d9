"""An adaptor that a run has left, with what must be known about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.box.input import Input
from soda_tta.box.view import View
from soda_tta.engine.card import Card
from soda_tta.engine.run import Run
from soda_tta.errors import RunError
from soda_tta.storage.run_folder import ADAPTOR, RunFolder

AVERAGED = (
    "the run averaged each answer with the unadapted one; this is the answer to the adapted image "
    "alone."
)
UNFINISHED = (
    "this run was interrupted: its adaptor is not the final one and was not judged; "
    "continue the run with resume=True."
)


@dataclass(frozen=True)
class SavedAdaptor:
    """An adaptor, the card of its run if there is one, and notices for the user."""

    adaptor: Adaptor
    card: Card | None = None
    notices: list[str] = field(default_factory=list)

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of the images that the run worked on; None: not known."""
        size = None if self.card is None else self.card.images.get("size")
        return None if size is None else (int(size[0]), int(size[1]))

    @property
    def view(self) -> View | None:
        """What of an image reaches the model of the run; None: all of it, or not known."""
        facts = None if self.card is None else self.card.box.get("input")
        return None if not facts else Input(**facts).view


def load_adaptor(source: Any) -> SavedAdaptor:
    """Load an adaptor.

    A run whose answers no adaptor gives is refused: applying it would give other answers.

    Parameters
    ----------
    source : an Adaptor, a Run, a run folder, or an adaptor.safetensors.
    """
    if isinstance(source, Adaptor):
        return SavedAdaptor(source)
    if isinstance(source, Run):
        return of_run(source, source.card.method)
    path = Path(source)
    if path.is_dir():
        folder = RunFolder(path)
        if folder.holds_run and folder.read_card().get("stopped") is None:
            raise RunError(
                f"{path} holds a run that has not ended and has no adaptor yet; "
                "continue it with resume=True first."
            )
        path = folder.adaptor_path
    adaptor = Adaptor.load(path)
    folder = RunFolder(path.parent)
    if path.name != ADAPTOR or not folder.holds_run:
        return SavedAdaptor(adaptor)
    if isinstance(adaptor, Identity) and adaptor.answering.is_plain:
        return of_run(Run.load(path.parent), str(path.parent))
    facts = folder.read_card()
    card = Card.from_facts(facts)
    return SavedAdaptor(adaptor, card, notices_of(card, facts.get("stopped")))


def of_run(run: Run, name: str) -> SavedAdaptor:
    """The adaptor of a run."""
    if not isinstance(run.adaptor, Identity) or not run.adaptor.answering.is_plain:
        return SavedAdaptor(run.adaptor, run.card, notices_of(run.card, run.stopped))
    if run.stopped == "interrupted":
        raise RunError(
            f"{name} is a run that was interrupted before it had an adaptor; "
            "continue it with resume=True first."
        )
    if run.after is not None and not np.array_equal(run.after, run.before):
        raise RunError(
            f"{name} is a run of {run.card.method}, which left no adaptor that gives its answers."
        )
    return SavedAdaptor(
        run.adaptor, run.card, [f"this adaptor leaves images as they are: {run.reason}"]
    )


def notices_of(card: Card, stopped: str | None) -> list[str]:
    """What a user of an adaptor should know about the run it comes from."""
    notices = [AVERAGED] if card.averaged else []
    return [*notices, UNFINISHED] if stopped == "interrupted" else notices

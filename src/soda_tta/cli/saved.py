"""The adaptor a run has left, for the commands that use it, and what must be said of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from soda_tta.errors import RunError
from soda_tta.storage.run_folder import WORKING

if TYPE_CHECKING:
    from soda_tta.adaptors import Adaptor


def saved_adaptor(place: str) -> tuple[Adaptor, Path]:
    """From a run directory or an adaptor file; and the folder it lies in.

    Refuses a run whose answers no adaptor gives: it would not be what was seen there.
    """
    from soda_tta.adaptors import Adaptor, Identity
    from soda_tta.engine.run import Run, read_card

    path = Path(place)
    if (path / WORKING).is_dir() and not (path / "adaptor.safetensors").exists():
        raise RunError(
            f"{path} is a run that has not ended and has no adaptor yet; go on with it first (--resume)."
        )
    adaptor = Adaptor.load(path / "adaptor.safetensors" if path.is_dir() else path)
    folder = path if path.is_dir() else path.parent
    if not (folder / "run.json").exists():
        return adaptor, folder
    card = read_card(folder)
    if isinstance(adaptor, Identity):
        run = Run.load(folder)
        if run.after is not None and not (run.after == run.before).all():
            raise RunError(
                f"{folder} is a run of {card['method']}, which left no adaptor that gives its answers."
            )
        say(f"this adaptor leaves images as they are: {run.reason}")
    elif card["settings"].get("average"):
        say("the run averaged each answer with the unadapted one; this is the adapted image alone.")
    return adaptor, folder


def say(text: str) -> None:
    print(f"soda-tta: {text}", file=sys.stderr)

"""The directory of a run: made, recognised as the one to continue, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from soda_tta.atomic import write_text
from soda_tta.errors import RunError
from soda_tta.run import Run, read_card

WORKING = "working"  # the part of a run directory that is only needed to continue the run
IDENTITY = ("method", "numbers", "seed", "budget", "images", "box")


def prepare_folder(folder: Path, card: dict[str, Any], resume: bool) -> Path:
    """Make the run directory, or check that the run in it is this one."""
    if (folder / "run.json").exists():
        if not resume:
            raise RunError(f"{folder} holds a run already; continue it with --resume, or choose another --out.")
        old = read_card(folder)
        old["box"].pop("classes", None)
        # the same recipe is planned alike, unless another version planned it
        old, new = ({**of, "rungs": of["plan"]["rungs"]} for of in (old, card))
        differs = [name for name in (*IDENTITY, "rungs") if _plain(old.get(name)) != _plain(new[name])]
        if differs:
            what = "; ".join(f"{name}: {_difference(old.get(name), new[name])}" for name in differs)
            raise RunError(f"{folder} holds another run ({what}); choose another --out.")
        for torn in folder.glob(".*.tmp"):  # a kill came while a file was being written
            torn.unlink(missing_ok=True)
        return folder
    # without a card nothing was asked yet: a process killed that early leaves at most a temporary file behind
    if folder.exists() and not (folder.is_dir() and all(path.match(".run.json.*.tmp") for path in folder.iterdir())):
        raise RunError(f"{folder} exists and is not an empty directory; choose another --out.")
    write_text(folder / "run.json", json.dumps({**card, "stopped": None}, indent=2) + "\n")
    return folder


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _difference(old: Any, new: Any) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        return ", ".join(
            f"{key} {old.get(key)} there, {new.get(key)} here"
            for key in new
            if _plain(old.get(key)) != _plain(new[key])
        )
    return f"{old} there, {new} here"


def finished_run(folder: Path) -> Run | None:
    """The run in it, if it has come to its end."""
    return Run.load(folder) if read_card(folder)["stopped"] in ("finished", "budget") else None

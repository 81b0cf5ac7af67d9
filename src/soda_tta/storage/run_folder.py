"""The directory of a run: made, recognised as the one to continue, or refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soda_tta.engine.run import Run, read_card
from soda_tta.errors import RunError
from soda_tta.storage.atomic import alone, make_folder, write_text

WORKING = "working"  # the part of a run directory that is only needed to continue the run
IDENTITY = ("method", "settings", "seed", "budget", "images", "box")


@contextmanager
def opened_folder(
    out: str | Path | None, card: dict[str, Any], resume: bool
) -> Iterator[Path | None]:
    """The run directory, made or found to hold this very run; nobody else works in it until the block ends."""
    if out is None:
        yield None
        return
    folder = Path(out)
    made = make_folder(folder)
    with alone(
        folder,
        f"another process is working on the run in {folder}; wait for it, or choose another --out.",
    ):
        try:
            _prepare(folder, card, resume)
            yield folder
        finally:
            if made and not any(folder.iterdir()):
                folder.rmdir()


def forget(folder: Path) -> None:
    """Take away what was written of a run."""
    shutil.rmtree(folder / WORKING, ignore_errors=True)
    (folder / "run.json").unlink(missing_ok=True)


def _prepare(folder: Path, card: dict[str, Any], resume: bool) -> None:
    """Make the run directory, or check that the run in it is this one."""
    if (folder / "run.json").exists():
        if not resume:
            raise RunError(
                f"{folder} holds a run already; continue it with --resume, or choose another --out."
            )
        old = read_card(folder)
        old["box"].pop("classes", None)
        if (
            old["method"] == card["method"]
        ):  # a number that a version has taken away did nothing; others stay
            old["settings"] = {
                name: value for name, value in old["settings"].items() if name in card["settings"]
            }
        # the same recipe is planned alike, unless another version planned it
        old, new = ({**of, "rungs": of["plan"]["rungs"]} for of in (old, card))
        differs = [
            name for name in (*IDENTITY, "rungs") if _plain(old.get(name)) != _plain(new[name])
        ]
        if differs == ["settings"] and (lacking := _lacking(old["settings"], new["settings"])):
            version = f"{folder} was begun by a version without {', '.join(lacking)}"
            raise RunError(f"{version}; finish it with that version, or choose another --out.")
        if differs:
            what = "; ".join(f"{name}: {_difference(old.get(name), new[name])}" for name in differs)
            raise RunError(f"{folder} holds another run ({what}); choose another --out.")
        for torn in folder.glob(".*.tmp"):  # a kill came while a file was being written
            torn.unlink(missing_ok=True)
        return
    # without a card nothing was asked yet: a process killed that early leaves at most a temporary file behind
    if not all(path.match(".run.json.*.tmp") for path in folder.iterdir()):
        raise RunError(f"{folder} is not an empty directory; choose another --out.")
    write_text(folder / "run.json", json.dumps({**card, "stopped": None}, indent=2) + "\n")


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _lacking(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The numbers that are new since, if nothing else tells the two apart."""
    same = all(_plain(new[name]) == value for name, value in old.items())
    return [name for name in new if name not in old] if same else []


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

"""Whether the run in a folder is the one that is to be continued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from soda_tta.errors import RunError
from soda_tta.plain_json import plain_json
from soda_tta.storage.atomic import write_text
from soda_tta.storage.card_check import entry

IDENTITY = (
    "method",
    "code",
    "settings",
    "seed",
    "budget",
    "images",
    "condition_by",
    "clean",
    "box",
    "helper",
)  # what makes two runs the same


def check_same_run(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise RunError, with every difference, unless the cards `old` and `new` describe one run."""
    for name in ("method", "settings", "box", "plan"):
        entry(folder, old, name)
    old = {**old, "box": {**old["box"]}}
    old["box"].pop("classes", None)  # known only after the first response
    if old["method"] == new["method"]:
        # A setting that a later version removed had no effect; the others must agree.
        kept = {name: old["settings"][name] for name in old["settings"] if name in new["settings"]}
        old["settings"] = kept
    # The same method is planned alike, unless another version planned it.
    old["rungs"] = old["plan"].get("rungs")
    new = {**new, "rungs": new["plan"]["rungs"]}
    names = (*IDENTITY, "rungs")
    differing = [name for name in names if plain_json(old.get(name)) != plain_json(new.get(name))]
    if differing == ["settings"]:
        added = added_settings(old["settings"], new["settings"])
        if added:
            raise RunError(
                f"{folder} was started by a version without {', '.join(added)}; finish it with "
                "that version, or choose another out=."
            )
    if differing:
        differences = [f"{name}: {difference(old.get(name), new.get(name))}" for name in differing]
        raise RunError(
            f"{folder} holds another run ({'; '.join(differences)}); choose another out=."
        )


def added_settings(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The settings that are new since, if nothing else differs."""
    if any(plain_json(new[name]) != value for name, value in old.items()):
        return []
    return [name for name in new if name not in old]


def difference(old: Any, new: Any) -> str:
    """What differs between two values of a card, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in new if plain_json(old.get(name)) != plain_json(new[name])]
        return ", ".join(f"{name} {old.get(name)} there, {new.get(name)} here" for name in names)
    return f"{old} there, {new} here"


def check_same_begin(folder: Path, path: Path, identity: str) -> None:
    """Refuse a folder in which another run was begun before it had a card; else note this one."""
    if path.exists() and path.read_text() != identity:
        raise RunError(
            f"another run was begun in {folder}, with another model, other images or another seed; "
            "choose another out=."
        )
    write_text(path, identity)

"""What the entries of run.json must be, so that its readers can rely on it.

A run folder may be damaged, edited or foreign. Entries that are absent, or not listed here, are
left to their readers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from soda_tta.errors import RunError
from soda_tta.foreign_json import parse_json
from soda_tta.foreign_text import quoted

LARGEST = 2**53  # a larger whole number is not exact in JSON


class Kind(NamedTuple):
    """A kind of value: its name in errors, and how it is recognised."""

    name: str
    holds: Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Whether this is a finite number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def is_count(value: Any) -> bool:
    """Whether this is a whole number of things."""
    return is_number(value) and value == int(value) and 0 <= value < LARGEST


def optional(kind: Kind) -> Kind:
    """The same, or null."""
    return Kind(f"{kind.name} or null", lambda value: value is None or kind.holds(value))


def list_of(kind: Kind) -> Kind:
    """A list of such values."""
    return Kind(
        f"a list, each {kind.name}",
        lambda value: isinstance(value, list) and all(map(kind.holds, value)),
    )


def object_of(kind: Kind) -> Kind:
    """An object of such values."""
    return Kind(
        f"an object, each value {kind.name}",
        lambda value: isinstance(value, dict) and all(map(kind.holds, value.values())),
    )


TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a number", is_number)
COUNT = Kind("a whole number of at least 0", is_count)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
LIST = Kind("a list", lambda value: isinstance(value, list))
SIDES = Kind(
    "height and width in pixels",
    lambda value: isinstance(value, list) and len(value) == 2 and all(map(is_count, value)),
)
STOPPED = Kind(
    "finished, budget, interrupted or null",
    lambda value: value in ("finished", "budget", "interrupted", None),
)

ENTRIES = {
    "method": TEXT,
    "settings": OBJECT,
    "seed": COUNT,
    "budget": optional(NUMBER),
    "images": OBJECT,
    "images.count": COUNT,
    "images.size": optional(SIDES),
    "images.fingerprint": TEXT,
    "box": OBJECT,
    "box.fingerprint": TEXT,
    "box.classes": COUNT,
    "box.logits": FLAG,
    "box.partial": FLAG,
    "box.background": FLAG,
    "box.input": optional(OBJECT),
    "box.input.size": optional(SIDES),
    "box.input.crop": optional(NUMBER),
    "box.input.turn": COUNT,
    "box.input.mirror": FLAG,
    "box.input.layout": TEXT,
    "box.input.channels": TEXT,
    "box.input.dtype": TEXT,
    "box.input.pixel_range": optional(NUMBER),
    "box.input.mean": list_of(NUMBER),
    "box.input.std": list_of(NUMBER),
    "convention": optional(OBJECT),
    "convention.facts": OBJECT,
    "convention.queries": COUNT,
    "convention.images": COUNT,
    "convention.background": FLAG,
    "convention.answers": LIST,
    "versions": object_of(TEXT),
    "plan": OBJECT,
    "plan.rungs": LIST,
    "plan.queries": object_of(COUNT),
    "soda_tta": TEXT,
    "code": optional(TEXT),
    "command": optional(list_of(TEXT)),
    "chosen_lr": optional(NUMBER),
    "reliable": optional(COUNT),
    "averaged": optional(FLAG),
    "answers": optional(TEXT),
    "stopped": STOPPED,
    "reason": TEXT,
    "queries": optional(object_of(COUNT)),
    "calls": optional(COUNT),
    "mean_confidence": OBJECT,
    "mean_confidence.before": optional(NUMBER),
    "mean_confidence.after": optional(NUMBER),
    "unreached_images": COUNT,
    "seconds": NUMBER,
    "notices": list_of(TEXT),
    "verdict": optional(OBJECT),
    "verdict.adopt": FLAG,
    "verdict.sentence": TEXT,
    "verdict.before": NUMBER,
    "verdict.after": NUMBER,
    "verdict.p_value": NUMBER,
    "verdict.level": NUMBER,
    "verdict.images": COUNT,
    "verdict.independent": optional(COUNT),
    "verdict.basis": TEXT,
    "verdict.measure": TEXT,
    "next_steps": list_of(TEXT),
    "earlier_verdicts": list_of(OBJECT),
    "groups": optional(OBJECT),
    "helper": optional(OBJECT),
    "condition_by": optional(OBJECT),
    "mixed": optional(OBJECT),
    "mixed.unfamiliar": COUNT,
    "mixed.conditions": list_of(OBJECT),
}


def check_entries(path: Path, facts: dict[str, Any]) -> None:
    """Raise a RunError that names the first entry of run.json that is not what it must be."""
    entry(path, facts, "method")  # without it there is nothing to say about the run
    for name, kind in ENTRIES.items():
        *outer, last = name.split(".")
        place: Any = facts
        for part in outer:
            place = place.get(part) if isinstance(place, dict) else None
        if isinstance(place, dict) and last in place and not kind.holds(place[last]):
            raise RunError(
                f"{path} is damaged: {name} is {quoted(repr(place[last]), 60)}, not {kind.name}; "
                "restore it from a copy, or start a new run with another out=."
            )


def entry(path: Path, facts: dict[str, Any], name: str) -> Any:
    """One entry; raise a RunError if it is absent."""
    if name not in facts:
        raise RunError(
            f"{path} is damaged: {name} is missing; restore it from a copy, or start a new run "
            "with another out=."
        )
    return facts[name]


def read_card(path: Path, version: int) -> dict[str, Any]:
    """The card in a file, which must be of this version of the format."""
    try:
        facts = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path.parent} holds no run (there is no {path.name}).") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {quoted(error)}") from error
    if not isinstance(facts, dict) or facts.get("format") != version:
        raise RunError(
            f"{path} was written by another version of this package; read it with that version."
        )
    check_entries(path, facts)
    return facts

"""A saved stream: arrays and facts in one safetensors file. Nothing in it is executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from soda_tta.errors import RunError
from soda_tta.storage.checkpoint import keys_of, read_arrays, write_arrays
from soda_tta.types import Array

KEY = "soda_tta.stream"  # the metadata entry that holds the facts
LIVE_KEY = "soda_tta.live"  # the same of a stream that learns behind the traffic
FORMAT = 3


def write_stream_file(path: Path, arrays: dict[str, Array], facts: dict[str, Any]) -> None:
    """Write a stream, atomically."""
    write_arrays(path, arrays, facts, KEY)


def read_stream_file(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and facts of a saved stream."""
    if not path.is_file():
        raise RunError(f"{path} does not exist; give a file written by Stream.save.")
    if LIVE_KEY in keys_of(path):
        raise RunError(f'{path} is a stream of soda-e: pass method="soda-e".')
    arrays, facts = read_arrays(path, KEY, f"{path} is not a saved stream")
    complete = isinstance(facts, dict) and {"method", "box"} <= facts.keys()
    if not complete or facts.get("format") != FORMAT:
        raise RunError(
            f"{path} was written by another version of this package; read it with that version."
        )
    return arrays, facts


def check_same_model(path: str | Path, saved: dict[str, Any], current: dict[str, Any]) -> None:
    """Refuse a stream that was saved in front of another model; both are cards of a box."""
    if saved["fingerprint"] != current["fingerprint"]:
        raise RunError(
            f"{path} belongs to another model ({saved['fingerprint']}); "
            "start a new stream for this one."
        )
    if saved != current:
        raise RunError(
            f"{path} was learned with {saved}, and this model is {current}; "
            "specify the same facts about the model."
        )

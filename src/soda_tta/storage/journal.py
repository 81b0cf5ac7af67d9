"""What a run leaves on disk while it works, so that a kill at any moment loses no paid answer but the one under way."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from soda_tta.engine.events import Step
from soda_tta.errors import RunError
from soda_tta.storage.atomic import append_bytes, write_bytes
from soda_tta.types import Array

KEY = "soda_tta.checkpoint"


class Journal:
    """Steps, one JSON line each, appended as soon as they are paid. Numbers survive exactly."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def append(self, step: Step) -> None:
        append_bytes(self.path, (json.dumps(asdict(step)) + "\n").encode())

    def rewrite(self, steps: list[Step]) -> None:
        write_bytes(self.path, "".join(json.dumps(asdict(step)) + "\n" for step in steps).encode())

    def read(self) -> list[Step]:
        """Every whole line; a line torn by a kill is cut off."""
        if not self.path.exists():
            return []
        whole = self.path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        if kept != whole:
            with self.path.open("r+b") as file:
                file.truncate(len(kept))
        try:
            return [step_from_json(line) for line in kept.splitlines()]
        except (ValueError, TypeError) as error:
            raise RunError(
                f"{self.path} is not a history of this version ({error}); start the run anew."
            ) from error


def step_from_json(line: bytes | str) -> Step:
    facts = json.loads(line)
    return Step(**{**facts, "losses": tuple(facts["losses"])})


def write_checkpoint(path: Path, arrays: dict[str, Array], facts: dict[str, Any]) -> None:
    write_bytes(
        path,
        save(
            {name: np.ascontiguousarray(a) for name, a in arrays.items()}, {KEY: json.dumps(facts)}
        ),
    )


def read_checkpoint(path: Path) -> tuple[dict[str, Array], dict[str, Any]] | None:
    """Arrays and facts, or None if no epoch was completed."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
            return arrays, json.loads(file.metadata()[KEY])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{path} is not a checkpoint of this package; start the run anew."
        ) from error


class AnswerFile:
    """The answers of a pass over all images, kept piece by piece: number of classes, then rows of float32.

    `kept` holds what an earlier process has paid already; a torn row is cut off.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.kept = np.zeros((0, 0), np.float32)
        if path is None or not path.exists():
            return
        raw = path.read_bytes()
        classes = int(np.frombuffer(raw[:8], "<i8")[0]) if len(raw) >= 8 else 0
        rows = (len(raw) - 8) // (4 * classes) if classes else 0
        if rows:
            self.kept = np.frombuffer(raw, "<f4", rows * classes, 8).reshape(rows, classes).copy()
        with path.open("r+b") as file:
            file.truncate(8 + self.kept.nbytes if rows else 0)

    def append(self, rows: Array, first: bool) -> None:
        if self.path is not None:
            header = np.array(rows.shape[1], "<i8").tobytes() if first else b""
            append_bytes(self.path, header + rows.astype("<f4").tobytes())

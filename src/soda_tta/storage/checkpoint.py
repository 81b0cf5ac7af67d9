"""A checkpoint: named arrays and a few facts in one safetensors file, written atomically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from soda_tta.errors import RunError
from soda_tta.foreign_json import parse_json
from soda_tta.storage.atomic import write_bytes
from soda_tta.types import Array


def write_arrays(path: Path, arrays: dict[str, Array], facts: dict[str, Any], key: str) -> None:
    """Write arrays, with `facts` as JSON in the metadata entry `key`."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_bytes(path, save(contiguous, {key: json.dumps(facts)}))


def keys_of(path: Path) -> set[str]:
    """The metadata entries of a file; none if it is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            return set(file.metadata() or {})
    except (SafetensorError, OSError):
        return set()


def read_arrays(path: Path, key: str, problem: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read what `write_arrays` wrote; raise `RunError(problem)` if the file is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            arrays = {name: file.get_tensor(name) for name in names}
            return arrays, parse_json((file.metadata() or {})[key])
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise RunError(f"{problem} ({type(error).__name__}).") from error

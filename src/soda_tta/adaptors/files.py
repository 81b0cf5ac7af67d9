"""Adaptors on disk: one safetensors file, parameters and a JSON description. Never a pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from soda_tta.errors import RunError
from soda_tta.storage.atomic import write_bytes
from soda_tta.types import Array

KEY = "soda_tta.adaptor"


def write_adaptor_file(path: Path, kind: str, settings: dict[str, Any], parameters: Array) -> None:
    description = json.dumps({"kind": kind, "settings": settings}, sort_keys=True)
    write_bytes(
        path, save({"parameters": np.ascontiguousarray(parameters, np.float32)}, {KEY: description})
    )


def read_adaptor_file(path: Path) -> tuple[str, dict[str, Any], Array]:
    """Kind, settings and parameters; a sentence if the file is something else."""
    if not path.is_file():
        raise RunError(f"{path} does not exist; give an adaptor.safetensors written by a run.")
    try:
        with safe_open(path, framework="numpy") as file:
            description = json.loads((file.metadata() or {})[KEY])
            return description["kind"], description["settings"], file.get_tensor("parameters")
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise RunError(
            f"{path} is not an adaptor of this package ({type(error).__name__})."
        ) from error

"""Adaptors on disk: one safetensors file with parameters and a JSON description, never a pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from soda_tta.errors import RunError
from soda_tta.foreign_json import parse_json
from soda_tta.foreign_text import quoted
from soda_tta.storage.atomic import write_bytes
from soda_tta.types import Array

KEY = "soda_tta.adaptor"
LARGEST = 1e6  # of a parameter; learned ones are below 100


def write_adaptor_file(path: Path, kind: str, settings: dict[str, Any], parameters: Array) -> None:
    """Write an adaptor: the whole file or none.

    Parameters
    ----------
    path : Path
    kind : str
        The adaptor's `kind`.
    settings : dict
        The adaptor's `settings`, plain JSON.
    parameters : array of shape (d,)
    """
    description = json.dumps({"kind": kind, "settings": settings}, sort_keys=True)
    tensors = {"parameters": np.ascontiguousarray(parameters, np.float32)}
    write_bytes(path, save(tensors, {KEY: description}))


def read_adaptor_file(path: Path) -> tuple[str, dict[str, Any], Array]:
    """Read kind, settings and parameters; raise a RunError if the file is something else.

    Parameters
    ----------
    path : Path
        A file written by `write_adaptor_file`.
    """
    if not path.is_file():
        raise RunError(f"{path} does not exist; give an adaptor.safetensors written by a run.")
    try:
        with safe_open(path, framework="numpy") as file:
            description = parse_json((file.metadata() or {})[KEY])
            kind, settings = description["kind"], description["settings"]
            parameters = file.get_tensor("parameters")
        check_content(kind, settings, parameters)
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise RunError(
            f"{path} is not an adaptor file of soda-tta ({type(error).__name__}: {quoted(error)}); "
            "give an adaptor.safetensors written by a run."
        ) from error
    return kind, settings, parameters


def check_content(kind: Any, settings: Any, parameters: Array) -> None:
    """Raise ValueError for what no adaptor can be built from, whatever its kind."""
    if not isinstance(kind, str) or not isinstance(settings, dict):
        raise ValueError("its kind is not a text, or its settings are not an object")
    if parameters.dtype != np.float32 or parameters.ndim != 1:
        raise ValueError(f"its parameters are {parameters.dtype} of shape {parameters.shape}")
    if parameters.size and not np.abs(parameters).max() <= LARGEST:  # also refuses NaN
        raise ValueError(f"its parameters are not numbers of at most {LARGEST:g}")

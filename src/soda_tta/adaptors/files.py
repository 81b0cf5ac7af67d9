"""Adaptors on disk: one safetensors file with parameters and a JSON description, never a pickle.

Lists of numbers inside the settings are tensors of the file, in whose place the description names
them: {"tensor": "settings/router/centre"}.

A file whose answers need more than the adaptor (`answering.py`: views, class weights) has another
key, so that a version of this package that does not know them refuses it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from soda_tta.errors import RunError
from soda_tta.foreign_json import parse_json
from soda_tta.foreign_text import quoted
from soda_tta.storage.atomic import write_bytes
from soda_tta.types import Array

KEY = "soda_tta.adaptor"
KEY_WITH_ANSWERS = "soda_tta.adaptor/2"
LARGEST = 1e6  # of a parameter; learned ones are below 100
MOST = 10**6  # numbers of a tensor in the settings
TENSOR = "tensor"  # key of what stands for a list of numbers


class AdaptorFile(NamedTuple):
    """What a file holds."""

    kind: str
    settings: dict[str, Any]
    parameters: Array
    answers: dict[str, Any] | None  # None: the model's responses are the answers


def write_adaptor_file(
    path: Path,
    kind: str,
    settings: dict[str, Any],
    parameters: Array,
    answers: dict[str, Any] | None = None,
) -> None:
    """Write an adaptor: the whole file or none.

    Parameters
    ----------
    path : Path
    kind : str
        The adaptor's `kind`.
    settings : dict
        The adaptor's `settings`, plain JSON.
    parameters : array of shape (d,)
    answers : dict, optional
        The settings of its `Answering`, plain JSON; None if it is plain.
    """
    tensors = {"parameters": np.ascontiguousarray(parameters, np.float32)}
    plain = without_numbers(settings, "settings", tensors)
    description = {"kind": kind, "settings": plain}
    if answers is not None:
        description["answers"] = without_numbers(answers, "answers", tensors)
    key = KEY if answers is None else KEY_WITH_ANSWERS
    write_bytes(path, save(tensors, {key: json.dumps(description, sort_keys=True)}))


def read_adaptor_file(path: Path) -> AdaptorFile:
    """Read what a file holds; raise a RunError if the file is something else.

    Parameters
    ----------
    path : Path
        A file written by `write_adaptor_file`.
    """
    if not path.is_file():
        raise RunError(f"{path} does not exist; give an adaptor.safetensors written by a run.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            description = parse_json(metadata.get(KEY_WITH_ANSWERS) or metadata[KEY])
            kind = description["kind"]
            settings = with_numbers(description["settings"], file)
            answers = with_numbers(description.get("answers"), file)
            parameters = file.get_tensor("parameters")
        check_content(kind, settings, parameters)
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise RunError(
            f"{path} is not an adaptor file of soda-tta ({type(error).__name__}: {quoted(error)}); "
            "give an adaptor.safetensors written by a run."
        ) from error
    return AdaptorFile(kind, settings, parameters, answers)


def check_content(kind: Any, settings: Any, parameters: Array) -> None:
    """Raise ValueError for what no adaptor can be built from, whatever its kind."""
    if not isinstance(kind, str) or not isinstance(settings, dict):
        raise ValueError("its kind is not a text, or its settings are not an object")
    if parameters.dtype != np.float32 or parameters.ndim != 1:
        raise ValueError(f"its parameters are {parameters.dtype} of shape {parameters.shape}")
    if parameters.size and not np.abs(parameters).max() <= LARGEST:  # also refuses NaN
        raise ValueError(f"its parameters are not numbers of at most {LARGEST:g}")


def without_numbers(value: Any, name: str, tensors: dict[str, Array]) -> Any:
    """Settings with their lists of numbers moved to `tensors`, under names that begin with `name`.

    >>> tensors = {}
    >>> without_numbers({"grain": 1.0, "centre": [0.5, 2.0]}, "settings", tensors)
    {'grain': 1.0, 'centre': {'tensor': 'settings/centre'}}
    >>> tensors
    {'settings/centre': array([0.5, 2. ])}
    """
    if isinstance(value, dict):
        return {key: without_numbers(each, f"{name}/{key}", tensors) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    array = as_numbers(value)
    if array is None:
        return [
            without_numbers(each, f"{name}/{place}", tensors) for place, each in enumerate(value)
        ]
    tensors[name] = array
    return {TENSOR: name}


def as_numbers(value: list[Any]) -> Array | None:
    """A list as an array that gives it back unchanged; None if there is no such array."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return None
    numeric = array.dtype in (np.float64, np.int64) and array.size > 0
    return array if numeric and repr(array.tolist()) == repr(value) else None


def with_numbers(value: Any, file: Any) -> Any:
    """The inverse of `without_numbers`, for an open safetensors file; ValueError if damaged."""
    if isinstance(value, list):
        return [with_numbers(each, file) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {TENSOR}:
        return {key: with_numbers(each, file) for key, each in value.items()}
    extents = file.get_slice(value[TENSOR]).get_shape()
    if math.prod(max(extent, 1) for extent in extents) > MOST:  # before memory is taken for it
        raise ValueError(f"a tensor of shape {extents} in its settings is too large")
    return file.get_tensor(value[TENSOR]).tolist()

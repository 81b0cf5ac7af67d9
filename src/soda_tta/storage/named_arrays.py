"""Parts of a state: named arrays below a prefix, and plain JSON as one of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from soda_tta.foreign_json import parse_json
from soda_tta.types import Array

Arrays = dict[str, Array]


def below(prefix: str, arrays: Arrays) -> Arrays:
    """The same arrays under longer names.

    >>> list(below("search.", {"theta": np.zeros(2)}))
    ['search.theta']
    """
    return {prefix + name: array for name, array in arrays.items()}


def part_of(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays below a prefix, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def as_array(facts: Any) -> Array:
    """Plain JSON as an array of bytes."""
    return np.frombuffer(json.dumps(facts).encode(), np.uint8)


def from_array(array: Array) -> Any:
    """The inverse of `as_array`; ValueError if it is something else.

    >>> from_array(as_array({"images": 3}))
    {'images': 3}
    """
    return parse_json(array.tobytes())

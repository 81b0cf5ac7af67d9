"""A value as JSON returns it, so that one in memory equals the same one read from a file."""

from __future__ import annotations

import json
from typing import Any


def plain_json(value: Any) -> Any:
    """The value after a round trip through JSON: its tuples are lists.

    Examples
    --------
    >>> plain_json({"size": (32, 32)})
    {'size': [32, 32]}
    """
    return json.loads(json.dumps(value))

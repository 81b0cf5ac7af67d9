"""JSON that others wrote: every way in which it can be wrong is a ValueError."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 64  # levels; whatever walks over the result calls itself once per level


def parse_json(text: str | bytes, deepest: int | None = DEEPEST) -> Any:
    """Parse JSON; ValueError if it is damaged or nested too deeply.

    Parameters
    ----------
    text : str or bytes
    deepest : int or None, default 64
        Levels of lists and objects. None: as many as Python parses, without a check, for large
        messages.

    Examples
    --------
    >>> parse_json('{"seed": 1}')
    {'seed': 1}
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: it is nested too deeply
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if deepest is not None and is_deeper(value, deepest):
        raise ValueError("it is nested too deeply")
    return value


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested in more than so many levels."""
    level = [value]
    for _ in range(levels + 1):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        if not inner:
            return False
        level = inner
    return True

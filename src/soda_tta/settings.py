"""Settings of methods and their parts: fields with help text, and values from the command line."""

from __future__ import annotations

import math
from dataclasses import field, fields
from numbers import Real
from typing import Any

from soda_tta.errors import MethodError

ALIASES = {"q": "directions"}  # letters of the paper


def setting(default: Any, meaning: str) -> Any:
    """A dataclass field with a default and one line that says what it means.

    `soda-tta methods NAME` shows the line beside the value.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Walk:
    ...     lr: float = setting(0.1, "learning rate")
    >>> Walk().lr, meanings_of(Walk())
    (0.1, {'lr': 'learning rate'})
    """
    return field(default=default, metadata={"meaning": meaning})


def meanings_of(part: Any) -> dict[str, str]:
    """The help text of every field of a dataclass; empty for fields that have none."""
    return {each.name: each.metadata.get("meaning", "") for each in fields(part)}


def without_aliases(settings: dict[str, Any]) -> dict[str, Any]:
    """Replace the letters of the paper by the names they stand for.

    >>> without_aliases({"q": 10, "mu": 0.01})
    {'directions': 10, 'mu': 0.01}
    """
    for letter, name in ALIASES.items():
        if letter in settings and name in settings:
            raise MethodError(f"{letter} and {name} are the same setting; give one of them.")
    return {ALIASES.get(name, name): value for name, value in settings.items()}


def convert(name: str, value: Any, like: Any) -> Any:
    """Convert a value from the command line or from Python to the type of the value it replaces.

    Parameters
    ----------
    name : the setting, for error messages.
    value : a string from the command line, or a value from Python.
    like : the current value, whose type is kept.

    Examples
    --------
    >>> convert("epochs", "3", like=150), convert("lr", "1e-2", like=0.1)
    (3, 0.01)
    """
    if isinstance(value, str):
        value = _parse(name, value, like)
    if isinstance(like, bool):
        if not isinstance(value, bool):
            raise MethodError(f"{name}={value} is not valid; give true or false.")
        return value
    if isinstance(like, str) and not isinstance(value, str):
        raise MethodError(f"{name}={value} is not valid; give a string.")
    if type(like) in (int, float):
        return _number(name, value, like)
    return value


def _parse(name: str, text: str, like: Any) -> Any:
    try:
        if isinstance(like, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(like, int | float):
            return float(text)
    except (ValueError, KeyError):
        kinds = {bool: "true or false", int: "a whole number"}
        expected = kinds.get(type(like), "a number")
        raise MethodError(f"{name}={text} is not valid; give {expected}.") from None
    return text


def _number(name: str, value: Any, like: float) -> int | float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise MethodError(f"{name}={value} is not valid; give a number.")
    number = float(value)
    if not math.isfinite(number):
        raise MethodError(f"{name}={value} is not valid; give a finite number.")
    if not isinstance(like, int):
        return number
    if number != int(number):
        raise MethodError(f"{name}={value} is not valid; give a whole number.")
    return int(number)

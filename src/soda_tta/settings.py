"""Settings of methods and parts: dataclass fields that carry their own help text."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any


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

"""Docstrings of this package as Sphinx expects them."""

from __future__ import annotations

import re
from typing import Any

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields")
ENTRY = re.compile(r"^([\w*, ]+) : (.+)$")
TYPE = re.compile(r"^[\w\[\]., |]*$")  # float, optional · list of Path · dict[str, int]
ADDRESS = re.compile(r"(?<![`\w])((?!https?:)[a-z0-9]+://[\w.:/\[\]-]*\w)(?!`)")
ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
BEFORE_NAPOLEON = 400


def connect(app: Any) -> None:
    """Ask Sphinx for every docstring, before its own extension for NumPy's sections."""
    app.connect("autodoc-process-docstring", adjust, priority=BEFORE_NAPOLEON)
    app.connect("autodoc-process-signature", with_plain_aliases)


def adjust(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Change the lines in place."""
    lines[:] = [ADDRESS.sub(r"`\1`", line) for line in described(lines)]


def with_plain_aliases(*facts: Any) -> tuple[str, str] | None:
    """A signature in which an alias of a type is its name; properties have none."""
    *_, signature, result = facts
    if signature is None:
        return None
    return ALIAS.sub(r"\1", signature), ALIAS.sub(r"\1", result or "")


def described(lines: list[str]) -> list[str]:
    """Turn `name : its meaning` into a name with a description; `name : type` stays as it is.

    >>> described(["Parameters", "----------", "seed : everything random follows from it."])
    ['Parameters', '----------', 'seed', '    everything random follows from it.']
    >>> described(["Parameters", "----------", "seed : int", "    Start of the stream."])
    ['Parameters', '----------', 'seed : int', '    Start of the stream.']
    """
    made = []
    in_section = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if following.startswith("---"):
            in_section = line in SECTIONS
        entry = ENTRY.match(line) if in_section else None
        if entry is None or is_type(entry[2], following):
            made.append(line)
            continue
        made += [entry[1], f"    {entry[2]}"]
    return made


def is_type(text: str, following: str) -> bool:
    """Whether what follows a colon is a type, described by a sentence on the next line."""
    described_below = following.startswith("    ") and following.strip()[:1].isupper()
    return described_below and TYPE.match(text) is not None

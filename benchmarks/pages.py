"""Markdown tables of the documentation pages that are generated from stored results.

A page marks the place of a table with `<!-- begin NAME -->` and `<!-- end NAME -->`.
The text outside the markers is written by hand and is never changed.
"""

from __future__ import annotations

import re

NOT_RUN = "Not run yet."


def markdown(rows: list[list[str]]) -> str:
    """A Markdown table; the first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    separator = "|---" * len(rows[0]) + "|"
    return "\n".join([lines[0], separator, *lines[1:]])


def replace_tables(page: str, tables: dict[str, str]) -> str:
    """The page with each generated text between its markers."""
    for name, text in tables.items():
        pattern = rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)"
        page, count = re.subn(
            pattern, lambda m, text=text: f"{m[1]}{text}\n{m[2]}", page, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(f"The page has {count} places for {name}; it needs exactly one.")
    return page

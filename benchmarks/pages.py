"""Tables of the documents that are rendered from results, between markers; text outside them is left alone."""

from __future__ import annotations

import re

NOTHING = "Not run yet."


def markdown(lines: list[list[str]]) -> str:
    """The first line is the head."""
    written = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([written[0], "|---" * len(lines[0]) + "|", *written[1:]])


def renewed(page: str, texts: dict[str, str]) -> str:
    """The page with each text in its place."""
    for name, text in texts.items():
        pattern = rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)"
        page, count = re.subn(
            pattern, lambda m, text=text: f"{m[1]}{text}\n{m[2]}", page, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(f"the page has {count} places for {name}; it needs one.")
    return page

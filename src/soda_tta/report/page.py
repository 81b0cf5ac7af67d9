"""Templates to HTML: everything is escaped but the figures we drew ourselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from soda_tta._version import __version__
from soda_tta.report.verdict_words import points


def render(template: str, **values: Any) -> str:
    """One self-contained page."""
    text = environment().get_template(template).render(version=__version__, **values)
    # a file name need not be UTF-8, and a page must be
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["percent"] = lambda share: f"{share:.1%}"
    made.filters["points"] = points
    made.filters["sentence"] = lambda words: (
        words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")
    )
    made.filters["thousands"] = lambda number: f"{number:,}"
    return made

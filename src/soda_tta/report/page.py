"""Render templates to HTML. Everything is escaped except the figures, which are drawn here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from soda_tta._version import __version__
from soda_tta.foreign_text import escaped
from soda_tta.report.headline import points
from soda_tta.wording import counted


@dataclass(frozen=True)
class Figure:
    """A plot and its caption."""

    svg: Markup
    caption: str


def render(template: str, **values: Any) -> str:
    """Render one self-contained page."""
    text = environment().get_template(template).render(version=__version__, **values)
    # A file name may contain bytes that are not UTF-8, a page may not.
    readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    # A foreign run folder may hold control characters, and a command is copied from the page.
    return escaped(readable)


@cache
def environment() -> Environment:
    """The template environment with the filters of the pages."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["percent"] = lambda share: f"{share:.1%}"
    templates.filters["points"] = points
    templates.filters["sentence"] = as_sentence
    templates.filters["counted"] = counted
    templates.filters["thousands"] = lambda number: f"{number:,}"
    return templates


def as_sentence(text: str) -> str:
    """A phrase with a capital and a full stop.

    >>> as_sentence("median 0.80, contrast x1.20")
    'Median 0.80, contrast x1.20.'
    """
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."

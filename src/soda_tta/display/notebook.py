"""A bar in a notebook, and a table for objects that notebooks show. All text is escaped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any

EVERY = 0.2  # seconds between two drawings: each is a message to the browser


class NotebookBar:
    """A bar that replaces itself in the output of a cell; see `display.Bar`.

    It needs IPython alone, not ipywidgets. Its texts stay in the notebook.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        self.ipython: Any = import_module("IPython.display")
        self.handle: Any = None  # of the output that is replaced
        self.total = 0
        self.drawn_at = 0.0
        self.state = ("", 0, "", "")

    def start(self) -> None:
        """Draw from now on."""

    def stop(self) -> None:
        """Leave the texts in the notebook, without a bar that would never move again."""
        if self.handle is not None:
            self.handle.update(self.ipython.HTML(f"<div>{self.texts()}</div>"))

    def begin(self, name: str, total: int) -> None:
        """Begin a bar of this length."""
        self.total = total
        self.state = (name, 0, "", "")
        self.handle = self.ipython.display(self.ipython.HTML(self.html()), display_id=True)

    def show(self, name: str, done: int, beside: str, below: str) -> None:
        """Show how much is done."""
        self.state = (name, done, beside, below)
        if time.monotonic() - self.drawn_at >= EVERY:
            self._draw()

    def say(self, text: str) -> None:
        """Show a notice that stays."""
        self.ipython.display(self.ipython.HTML(f"<div>note: {escape(text)}</div>"))

    def html(self) -> str:
        """The bar and its texts."""
        name, done, *_ = self.state
        bar = f'<progress value="{done}" max="{self.total}"></progress>'
        return f"<div>{escape(name)} {bar} {self.texts()}</div>"

    def texts(self) -> str:
        """What stands beside and below the bar."""
        *_, beside, below = self.state
        return f"{escape(beside)}<br><small>{escape(below)}</small>"

    def _draw(self) -> None:
        self.drawn_at = time.monotonic()
        self.handle.update(self.ipython.HTML(self.html()))


def html_columns(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below a header as an HTML table.

    >>> html_columns("conditions", ["words"], [["<dark>"]])
    '<table><caption>conditions</caption><tr><th>words</th></tr><tr><td>&lt;dark&gt;</td></tr></table>'
    """
    names = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><caption>{escape(title)}</caption><tr>{names}</tr>{body}</table>"


def html_table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names and values as an HTML table.

    >>> html_table("run", [("verdict", "<b>")])
    '<table><caption>run</caption><tr><th>verdict</th><td>&lt;b&gt;</td></tr></table>'
    """
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows
    )
    return f"<table><caption>{escape(title)}</caption>{body}</table>"

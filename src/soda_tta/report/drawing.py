"""matplotlib figures as inline SVG: text stays text, and colours come from the page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from soda_tta.plotting import STYLE

# Placeholder colours. They occur nowhere else, so `embedded` can replace them in the SVG by
# variables of the style sheet: a page is light or dark as its reader prefers, and white on paper.
INK = "#010203"
LINE = "#010204"
BEFORE = "#010205"
AFTER = "#010206"
SERIES = tuple(f"#0203{number:02x}" for number in range(6))
VARIABLES = {
    INK: "var(--ink)",
    LINE: "var(--line)",
    BEFORE: "var(--before)",
    AFTER: "var(--after)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES)},
}
# line styles, so that curves can be distinguished without colour
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))
SIZE = (4.4, 2.7)  # inches: fits a column of the page and is readable on a phone
SETTINGS: Any = {
    **STYLE,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.8,
    "legend.handlelength": 1.6,
}


@dataclass
class Drawing:
    """A figure to draw on. `svg` is set when the `drawing` block ends."""

    figure: Figure
    axes: Any
    svg: Markup = Markup("")


@contextmanager
def drawing(title: str, size: tuple[float, float] = SIZE) -> Iterator[Drawing]:
    """Yield axes to draw on. The title is for screen readers; `size` is in inches."""
    # a salt of its own, so that no two figures share an id
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": title}):
        figure = Figure(figsize=size, layout="constrained")
        plot = Drawing(figure, figure.add_subplot())
        yield plot
        buffer = io.StringIO()
        figure.savefig(
            buffer,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
        plot.svg = embedded(buffer.getvalue(), title)


def embedded(text: str, title: str) -> Markup:
    """The <svg> element alone, scaled by the page, without ids that two figures would share."""
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    # a style element would apply to the whole page
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r" font-family: [^;\"]*;", "", svg)
    svg = re.sub(r'\s(?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(
        r' (d|x|y|transform|points)="[^"]*"',
        lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]),
        svg,
    )
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    label = f'<svg role="img" aria-label="{escape(title)}"'
    return Markup(svg.replace("<svg", label, 1))

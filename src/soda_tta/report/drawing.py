"""matplotlib figures as SVG that lives inside a page: its text is text, and its colours are those of the page."""

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

# Colours nobody would choose, so that they can be found in the SVG and handed over to the style sheet: the page is
# light or dark as its reader wishes, and paper is always white.
INK, LINE, BEFORE, AFTER = "#010203", "#010204", "#010205", "#010206"
SERIES = tuple(f"#0203{number:02x}" for number in range(6))
VARIABLES = {
    INK: "var(--ink)",
    LINE: "var(--line)",
    BEFORE: "var(--before)",
    AFTER: "var(--after)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES)},
}
STYLES = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (1, 2)),
)  # told apart without colour, too
SIZE = (4.4, 2.7)  # inches: a column of the page, and text of a readable size on a phone
SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text: small, and in the page's own font
    "text.parse_math": False,  # a class may be called $5
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
}


@dataclass
class Drawing:
    """A figure under way; when its block ends, `svg` is there."""

    figure: Figure
    axes: Any
    svg: Markup = Markup("")


@contextmanager
def drawing(title: str, size: tuple[float, float] = SIZE) -> Iterator[Drawing]:
    """Axes to draw on. The title is for those who hear the page instead of seeing it."""
    with matplotlib.rc_context(
        {**SETTINGS, "svg.hashsalt": title}
    ):  # a salt of its own: no two figures share an id
        figure = Figure(figsize=size, layout="constrained")
        under_way = Drawing(figure, figure.add_subplot())
        yield under_way
        buffer = io.StringIO()
        figure.savefig(
            buffer,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
        under_way.svg = embedded(buffer.getvalue(), title)


def embedded(text: str, title: str) -> Markup:
    """The <svg> element alone, scaled by the page, without names that two figures would share."""
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(
        r"<style.*?</style>", "", svg, flags=re.DOTALL
    )  # it would reach out of the figure, to the whole page
    svg = re.sub(r" font-family: [^;\"]*;", "", svg)
    svg = re.sub(r'\s(?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(
        r' (d|x|y|transform|points)="[^"]*"',
        lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]),
        svg,
    )
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    label = f'<svg role="img" aria-label="{escape(title)}"'
    return Markup(svg.replace("<svg", label, 1))

"""The style that all figures share, and matplotlib without its windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from soda_tta.errors import SodaError

# Okabe and Ito's colours, which colour-blind readers can distinguish, without their yellow: it is
# too pale for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = "osD^vP*X<>"  # lines also differ without colour
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text, and the file small
    "text.parse_math": False,  # a class may be called $5
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
}
ON_WHITE: dict[str, Any] = {
    **STYLE,
    "svg.hashsalt": "soda-tta",  # the same data gives the same bytes
    "grid.color": "#DDDDDD",
}


@contextmanager
def figure_factory() -> Iterator[Callable[[float, float], Any]]:
    """Inside the block, a function that makes a figure of a width and a height in inches.

    Raises `SodaError` if matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SodaError("figures need matplotlib: pip install 'soda-tta[report]'.") from error
    style: Any = ON_WHITE
    with matplotlib.rc_context(style):
        yield lambda width, height: Figure(figsize=(width, height), layout="constrained")

"""Figures of a store as SVG or PNG, or the data behind them as JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from soda_tta.bench import adaptor_figures, figure_data, figure_drawing
from soda_tta.bench.store import Store
from soda_tta.errors import SodaError
from soda_tta.plotting import figure_factory
from soda_tta.storage.atomic import replacing

SUFFIXES = (".svg", ".png")
Data = Callable[..., dict[str, Any]]
Drawing = Callable[[Any, dict[str, Any]], Any]
KINDS: dict[str, tuple[Data, Drawing]] = {
    "convergence": (figure_data.convergence, figure_drawing.convergence),
    "queries": (figure_data.queries, figure_drawing.queries),
    "heat": (figure_data.heat, figure_drawing.heat),
    "points": (figure_data.points, figure_drawing.points),
    "tsne": (adaptor_figures.tsne, figure_drawing.tsne),
    "pictures": (adaptor_figures.pictures, figure_drawing.pictures),
}
OPTIONS = {"tsne": ("method", "corruption"), "pictures": ("method", "image")}


def figure_facts(store: Store, kind: str, **options: Any) -> dict[str, Any]:
    """The data of a figure as a JSON object.

    Parameters
    ----------
    store : the results.
    kind : a name in `KINDS`.
    options : which `method` and `corruption` (tsne) or `image` (pictures) to show; `OPTIONS` lists
        what each kind takes.
    """
    if kind not in KINDS:
        raise SodaError(f"there is no figure {kind!r}; choose one of {', '.join(KINDS)}.")
    return {"kind": kind, **KINDS[kind][0](store, **options)}


def draw_figure(facts: dict[str, Any], out: Path) -> None:
    """Draw what `figure_facts` returns. The suffix of `out`, .svg or .png, chooses the format."""
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise SodaError(f"{out} is neither an .svg nor a .png file.")
    out.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"metadata": {"Date": None}} if suffix == ".svg" else {"dpi": 150}
    with figure_factory() as make_figure:
        figure = KINDS[facts["kind"]][1](make_figure, facts)
        with replacing(out) as temporary:
            figure.savefig(temporary, format=suffix[1:], **options)

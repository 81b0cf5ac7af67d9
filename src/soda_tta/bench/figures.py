"""Figures of a store as SVG or PNG, in colours that colour-blind readers tell apart, on white."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from soda_tta.bench import figure_data, learned
from soda_tta.bench.store import Store
from soda_tta.errors import SodaError
from soda_tta.storage.atomic import replacing

# Okabe and Ito's colours without their yellow, which is too pale for lines on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS, STYLES = "osD^vP*X<>", ("-", "--", "-.", ":")  # told apart without colour, too
SETTINGS = {
    "svg.fonttype": "none",  # text stays text, and the file small
    "svg.hashsalt": "soda-tta",  # the same store gives the same bytes
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "text.parse_math": False,
}
SUFFIXES = (".svg", ".png")
MANY = 8  # curves whose names find no room among them


def figure_facts(store: Store, kind: str, **options: Any) -> dict[str, Any]:
    """The data of a figure; `options` are of the kinds that show what was learned."""
    if kind not in KINDS:
        raise SodaError(f"there is no figure {kind!r}; choose one of {', '.join(KINDS)}.")
    return {"kind": kind, **KINDS[kind][0](store, **options)}


def draw_figure(facts: dict[str, Any], out: Path) -> None:
    """Write the figure of these facts; the suffix chooses the format."""
    if out.suffix.lower() not in SUFFIXES:
        raise SodaError(f"{out} is neither an .svg nor a .png file.")
    out.parent.mkdir(parents=True, exist_ok=True)
    with plotting() as plain:
        figure = KINDS[facts["kind"]][1](plain, facts)
        with replacing(out) as temporary:
            extra = {"metadata": {"Date": None}} if out.suffix.lower() == ".svg" else {"dpi": 150}
            figure.savefig(temporary, format=out.suffix.lower()[1:], **extra)


@contextmanager
def plotting() -> Iterator[Any]:
    """Matplotlib's figures without its windows."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SodaError("figures need matplotlib: pip install 'soda-tta[report]'.") from error
    settings: Any = SETTINGS
    with matplotlib.rc_context(settings):
        yield lambda width, height: Figure(figsize=(width, height), layout="constrained")


def looks() -> Iterator[dict[str, Any]]:
    return (
        {"color": colour, "marker": marker, "linestyle": style, "markersize": 4, "linewidth": 1.4}
        for colour, marker, style in zip(
            cycle(COLOURS), cycle(MARKERS), cycle(STYLES), strict=False
        )
    )


def plain_ticks(axis: Any) -> None:
    """1, 10, 100: powers of ten would need mathematics in the text."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def convergence(make: Any, facts: dict[str, Any]) -> Any:
    many = len(facts["series"]) > MANY
    figure = make(8.0 if many else 5.2, max(3.6, 0.17 * len(facts["series"])) if many else 3.6)
    axes = figure.add_subplot()
    for (name, points), look in zip(facts["series"].items(), looks(), strict=False):
        axes.plot([p["epoch"] for p in points], [p["accuracy"] for p in points], label=name, **look)
    axes.set(xlabel="epoch", ylabel="accuracy (%)")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if many:
        figure.legend(fontsize=7, loc="outside right center")
    else:
        axes.legend(fontsize=7)
    return figure


def queries(make: Any, facts: dict[str, Any]) -> Any:
    figure = make(7.0, max(3.4, 1.0 + 0.2 * len(facts["points"])))
    axes = figure.add_subplot()
    points = sorted(facts["points"], key=lambda point: point["queries_per_image"])
    colours = {}  # a name has that of its point
    for point, look in zip(points, looks(), strict=False):
        axes.plot(
            [point["queries_per_image"]], [point["accuracy"]], **{**look, "linestyle": "none"}
        )
        colours[point["name"]] = look["color"]
    axes.set(
        xscale="log",
        xlabel="queries an image",
        ylabel=f"accuracy (%), mean of {len(facts['corruptions'])}",
    )
    axes.set_xlim(right=4 * axes.get_xlim()[1])  # room for the last names
    low, high = axes.get_ylim()
    for together in neighbours(points):
        heights = apart([point["accuracy"] for point in together], (high - low) * 0.6 / len(points))
        right = max(point["queries_per_image"] for point in together) * (
            1.12 if len(together) > 1 else 1
        )
        for point, height in zip(together, heights, strict=True):
            told = {"fontsize": 7, "va": "center", "color": colours[point["name"]]}
            axes.annotate(
                point["name"], (right, height), (6, 0), textcoords="offset points", **told
            )
            from_to = [point["queries_per_image"], 1.03 * right], [point["accuracy"], height]
            axes.plot(
                *from_to, color=told["color"], linewidth=0.6, zorder=0
            )  # leads from a point to its name
        low, high = min(low, *heights), max(high, *heights)
    axes.set_ylim(low, high)  # names of many points of one height reach beyond all of them
    plain_ticks(axes.xaxis)
    return figure


def neighbours(points: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Points, sorted by their queries, whose names would run into each other."""
    groups: list[list[dict[str, Any]]] = []
    for point in points:
        if groups and point["queries_per_image"] < 1.7 * groups[-1][-1]["queries_per_image"]:
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


def apart(values: list[float], gap: float) -> list[float]:
    """The same values moved as little as need be for neighbours to be `gap` apart; the order stays.

    >>> apart([5.0, 1.0, 1.0], 1.0)
    [5.0, 0.5, 1.5]
    """
    places = sorted(range(len(values)), key=lambda place: values[place])
    clusters: list[list[int]] = []
    middles: list[float] = []
    for place in places:
        clusters.append([place])
        middles.append(values[place])
        while (
            len(clusters) > 1
            and middles[-1] - middles[-2] < gap * (len(clusters[-1]) + len(clusters[-2])) / 2
        ):
            last = clusters.pop()
            clusters[-1] += last
            middles.pop()
            middles[-1] = sum(values[each] for each in clusters[-1]) / len(clusters[-1])
    moved = list(values)
    for cluster, middle in zip(clusters, middles, strict=True):
        for rank, place in enumerate(cluster):
            moved[place] = middle + gap * (rank - (len(cluster) - 1) / 2)
    return moved


def heat(make: Any, facts: dict[str, Any]) -> Any:
    import numpy as np

    everything = facts["accuracy"]
    alphas = list(next(iter(everything.values())))
    figure = make(1 + 2.3 * len(alphas), 2.8 * len(everything))
    panels = figure.subplots(len(everything), len(alphas), squeeze=False)
    for of_one, (corruption, by_alpha) in zip(panels, everything.items(), strict=True):
        maps = np.array(list(by_alpha.values()), float)
        low = np.nanmin(maps)
        high = max(
            np.nanmax(maps), low + 1
        )  # nothing below a per cent is a difference worth a colour
        for axes, alpha, rows in zip(of_one, by_alpha, maps, strict=True):
            image = axes.imshow(rows, vmin=low, vmax=high, cmap="cividis", aspect="auto")
            axes.grid(False)
            for (row, column), value in np.ndenumerate(rows):
                if np.isfinite(value):
                    dark = value < (low + high) / 2
                    axes.text(
                        column,
                        row,
                        f"{value:.1f}",
                        ha="center",
                        va="center",
                        color="white" if dark else "black",
                    )
            axes.set_xticks(range(len(facts["tau"])), facts["tau"])
            axes.set_yticks(range(len(facts["rho"])), facts["rho"])
            axes.set(title=f"alpha = {float(alpha):g}", xlabel="tau", ylabel="rho")
        figure.colorbar(
            image, ax=list(of_one), label=f"accuracy (%), {corruption.replace('_', ' ')}"
        )
    return figure


def points(make: Any, facts: dict[str, Any]) -> Any:
    figure = make(5.2, 3.4)
    axes = figure.add_subplot()
    for (name, rows), look in zip(facts["series"].items(), looks(), strict=False):
        counts = [row["images"] for row in rows]
        axes.plot(counts, [row["after"] for row in rows], label=name, **{**look, "linestyle": "-"})
        axes.plot(
            counts, [row["before"] for row in rows], color=look["color"], linestyle=":", linewidth=1
        )
    axes.set(xscale="log", xlabel="test images (dotted: before)", ylabel="accuracy (%)")
    plain_ticks(axes.xaxis)
    axes.set_xticks(sorted({row["images"] for rows in facts["series"].values() for row in rows}))
    axes.legend(fontsize=7)
    return figure


def tsne(make: Any, facts: dict[str, Any]) -> Any:
    import numpy as np

    figure, labels = make(7.4, 3.6), np.array(facts["labels"])
    panels = figure.subplots(1, 2)
    for axes, when in zip(panels, ("before", "after"), strict=True):
        places = np.array(facts[when])
        for number, look in zip(np.unique(labels), looks(), strict=False):
            ours = places[labels == number]
            facing = {
                "c": look["color"],
                "marker": look["marker"],
                "label": facts["classes"][number],
            }
            axes.scatter(ours[:, 0], ours[:, 1], s=7, linewidths=0, **facing)
        axes.set(title=f"{when} ({facts['corruption'].replace('_', ' ')})", xticks=[], yticks=[])
        axes.grid(False)
    if len(np.unique(labels)) <= 20:
        panels[1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def pictures(make: Any, facts: dict[str, Any]) -> Any:
    """Corruptions side by side, above each other: corrupted, adapted; the original once, at the end."""
    import numpy as np

    shown = facts["pictures"]
    columns = min(10, len(shown) + 1)
    rows = -(-(len(shown) + 1) // columns)
    figure = make(0.85 * columns, 1.75 * rows)
    panels = figure.subplots(2 * rows, columns, squeeze=False)
    for axes in panels.flat:
        axes.set_axis_off()
    for place, each in enumerate([*shown, None]):
        row, column = divmod(place, columns)
        stack = [shown[0]["original"]] if each is None else [each["corrupted"], each["adapted"]]
        for below, pixels in enumerate(stack):
            panels[2 * row + below, column].imshow(
                np.array(pixels, np.uint8), interpolation="nearest"
            )
        title = "original" if each is None else each["corruption"].replace("_", "\n")
        panels[2 * row, column].set_title(title, fontsize=6)
    title = f"above: corrupted, below: adapted by {facts['method']}"
    figure.suptitle(textwrap.fill(title, 14 * columns), fontsize=8)
    return figure


Facts = Callable[..., dict[str, Any]]
KINDS: dict[str, tuple[Facts, Callable[[Any, dict[str, Any]], Any]]] = {
    "convergence": (figure_data.convergence, convergence),
    "queries": (figure_data.queries, queries),
    "heat": (figure_data.heat, heat),
    "points": (figure_data.points, points),
    "tsne": (learned.tsne, tsne),
    "pictures": (learned.pictures, pictures),
}
OPTIONS = {
    "tsne": ("method", "corruption"),
    "pictures": ("method", "image"),
}  # what a kind can be told besides

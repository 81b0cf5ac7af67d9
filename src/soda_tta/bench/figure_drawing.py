"""How each kind of figure is drawn. `make_figure` is what `figure_factory` gives."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np

from soda_tta.plotting import COLOURS, MARKERS

LINE_STYLES = ("-", "--", "-.", ":")
MANY = 8  # more curves than this get their legend beside the axes
PICTURES_PER_ROW = 10
MOST_CLASSES = 20  # with more classes, a legend would be longer than the figure
LEAST_RANGE = 1  # per cent; smaller differences are not worth a colour


def looks() -> Iterator[dict[str, Any]]:
    """A colour, marker and line style for each series."""
    return (
        {"color": colour, "marker": marker, "linestyle": style, "markersize": 4, "linewidth": 1.4}
        for colour, marker, style in zip(
            cycle(COLOURS), cycle(MARKERS), cycle(LINE_STYLES), strict=False
        )
    )


def plain_ticks(axis: Any) -> None:
    """Label ticks as 1, 10, 100: powers of ten would need mathematical text."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def convergence(make_figure: Any, facts: dict[str, Any]) -> Any:
    """Accuracy by epoch, one line per series."""
    many = len(facts["series"]) > MANY
    width = 8.0 if many else 5.2
    height = max(3.6, 0.17 * len(facts["series"])) if many else 3.6
    figure = make_figure(width, height)
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


def queries(make_figure: Any, facts: dict[str, Any]) -> Any:
    """Accuracy against queries per image, one named point per column of the table."""
    figure = make_figure(7.0, max(3.4, 1.0 + 0.2 * len(facts["points"])))
    axes = figure.add_subplot()
    points = sorted(facts["points"], key=lambda point: point["queries_per_image"])
    colours = {}  # a name has the colour of its point
    for point, look in zip(points, looks(), strict=False):
        axes.plot(
            [point["queries_per_image"]], [point["accuracy"]], **{**look, "linestyle": "none"}
        )
        colours[point["name"]] = look["color"]
    axes.set(
        xscale="log",
        xlabel="queries per image",
        ylabel=f"accuracy (%), mean of {len(facts['corruptions'])}",
    )
    axes.set_xlim(right=4 * axes.get_xlim()[1])  # space for the last names
    low, high = axes.get_ylim()
    for group in neighbours(points):
        heights = spread([point["accuracy"] for point in group], (high - low) * 0.6 / len(points))
        right = max(point["queries_per_image"] for point in group)
        if len(group) > 1:
            right *= 1.12
        for point, height in zip(group, heights, strict=True):
            colour = colours[point["name"]]
            axes.annotate(
                point["name"],
                (right, height),
                (6, 0),
                textcoords="offset points",
                fontsize=7,
                va="center",
                color=colour,
            )
            axes.plot(  # a thin line from the point to its name
                [point["queries_per_image"], 1.03 * right],
                [point["accuracy"], height],
                color=colour,
                linewidth=0.6,
                zorder=0,
            )
        low = min(low, *heights)
        high = max(high, *heights)
    axes.set_ylim(low, high)  # many names at one height reach beyond the points
    plain_ticks(axes.xaxis)
    return figure


def neighbours(points: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group points, sorted by queries, whose names would overlap."""
    groups: list[list[dict[str, Any]]] = []
    for point in points:
        if groups and point["queries_per_image"] < 1.7 * groups[-1][-1]["queries_per_image"]:
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


def spread(values: list[float], gap: float) -> list[float]:
    """Move values as little as possible so that neighbours are `gap` apart; the order stays.

    >>> spread([5.0, 1.0, 1.0], 1.0)
    [5.0, 0.5, 1.5]
    """
    clusters: list[list[int]] = []
    middles: list[float] = []
    for index in sorted(range(len(values)), key=lambda index: values[index]):
        clusters.append([index])
        middles.append(values[index])
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
        for rank, index in enumerate(cluster):
            moved[index] = middle + gap * (rank - (len(cluster) - 1) / 2)
    return moved


def heat(make_figure: Any, facts: dict[str, Any]) -> Any:
    """Accuracy by tau and rho: one map per alpha, one row of maps per corruption."""
    alphas = list(next(iter(facts["accuracy"].values())))
    figure = make_figure(1 + 2.3 * len(alphas), 2.8 * len(facts["accuracy"]))
    panels = figure.subplots(len(facts["accuracy"]), len(alphas), squeeze=False)
    for row, (corruption, by_alpha) in zip(panels, facts["accuracy"].items(), strict=True):
        maps = np.array(list(by_alpha.values()), float)
        low = np.nanmin(maps)
        high = max(np.nanmax(maps), low + LEAST_RANGE)
        for axes, alpha, values in zip(row, by_alpha, maps, strict=True):
            image = heat_map(axes, values, low, high)
            axes.set_xticks(range(len(facts["tau"])), facts["tau"])
            axes.set_yticks(range(len(facts["rho"])), facts["rho"])
            axes.set(title=f"alpha = {float(alpha):g}", xlabel="tau", ylabel="rho")
        label = f"accuracy (%), {corruption.replace('_', ' ')}"
        figure.colorbar(image, ax=list(row), label=label)
    return figure


def heat_map(axes: Any, values: Any, low: float, high: float) -> Any:
    """One map with its numbers."""
    image = axes.imshow(values, vmin=low, vmax=high, cmap="cividis", aspect="auto")
    axes.grid(False)
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if value < (low + high) / 2 else "black"
            axes.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour)
    return image


def points(make_figure: Any, facts: dict[str, Any]) -> Any:
    """Accuracy by the number of test images, before (dotted) and after."""
    figure = make_figure(5.2, 3.4)
    axes = figure.add_subplot()
    for (name, rows), look in zip(facts["series"].items(), looks(), strict=False):
        counts = [row["images"] for row in rows]
        after = [row["after"] for row in rows]
        before = [row["before"] for row in rows]
        axes.plot(counts, after, label=name, **{**look, "linestyle": "-"})
        axes.plot(counts, before, color=look["color"], linestyle=":", linewidth=1)
    axes.set(xscale="log", xlabel="test images (dotted: before)", ylabel="accuracy (%)")
    plain_ticks(axes.xaxis)
    axes.set_xticks(sorted({row["images"] for rows in facts["series"].values() for row in rows}))
    axes.legend(fontsize=7)
    return figure


def tsne(make_figure: Any, facts: dict[str, Any]) -> Any:
    """Features of every image in the plane, before and after, coloured by class."""
    labels = np.array(facts["labels"])
    figure = make_figure(7.4, 3.6)
    panels = figure.subplots(1, 2)
    for axes, when in zip(panels, ("before", "after"), strict=True):
        positions = np.array(facts[when])
        for number, look in zip(np.unique(labels), looks(), strict=False):
            own = positions[labels == number]
            axes.scatter(
                own[:, 0],
                own[:, 1],
                s=7,
                linewidths=0,
                c=look["color"],
                marker=look["marker"],
                label=facts["classes"][number],
            )
        axes.set(title=f"{when} ({facts['corruption'].replace('_', ' ')})", xticks=[], yticks=[])
        axes.grid(False)
    if len(np.unique(labels)) <= MOST_CLASSES:
        panels[1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def pictures(make_figure: Any, facts: dict[str, Any]) -> Any:
    """One column per corruption: corrupted above, adapted below; the original once, at the end."""
    shown = facts["pictures"]
    columns = min(PICTURES_PER_ROW, len(shown) + 1)
    rows = -(-(len(shown) + 1) // columns)
    figure = make_figure(0.85 * columns, 1.75 * rows)
    panels = figure.subplots(2 * rows, columns, squeeze=False)
    for axes in panels.flat:
        axes.set_axis_off()
    stacks = [
        (each["corruption"].replace("_", "\n"), [each["corrupted"], each["adapted"]])
        for each in shown
    ]
    stacks.append(("original", [shown[0]["original"]]))
    for place, (title, stack) in enumerate(stacks):
        row, column = divmod(place, columns)
        for below, pixels in enumerate(stack):
            panel = panels[2 * row + below, column]
            panel.imshow(np.array(pixels, np.uint8), interpolation="nearest")
        panels[2 * row, column].set_title(title, fontsize=6)
    title = f"above: corrupted, below: adapted by {facts['method']}"
    figure.suptitle(textwrap.fill(title, 14 * columns), fontsize=8)
    return figure

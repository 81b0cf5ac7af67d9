"""Accuracy against queries per image, for the front page: docs/economy.svg.

    python benchmarks/front_figure.py            # draw it from the stored results
    python benchmarks/front_figure.py --check    # fail if the stored results no longer give it

Five corruptions of CIFAR-10-C at severity 5, 1,000 images, one ResNet-20: those that every method
shown was run on. `python benchmarks/economy.py run curve` and `run white`, and `soda-tta bench run
yardstick`, measure them. White-box methods are lines across: they change the model and not the
images. The other black-box methods are points, from the first 500 of these images (`soda-tta bench
run cifar10`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import economy_curve
from cell_results import (
    Entry,
    accuracy_after,
    accuracy_before,
    curve_points,
    queries_per_image,
    stored_results,
)
from economy_parts import FIVE, PARTS
from economy_tables import YARDSTICK, line_of
from rate_choice import lowest_loss
from soda_tta.bench import Store
from soda_tta.plotting import COLOURS, MARKERS, figure_factory

ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "economy"
FIRST_500 = ROOT / "results" / "cifar10"
FIGURE = ROOT / "docs" / "economy.svg"
SIZE = (7.2, 3.9)  # inches
PAPER = "soda, the paper's 150 epochs"
WHITE = ("bn", "tent", "ma-so")  # they may change the model
OTHERS = ("lame", "dine", "beta", "da-pl", "da-direct", "da-pgd", "da-zoo-input")
LABEL_LEFT = ("da-pl",)  # on the other side it would cover a neighbour
STYLES = ((0, (6, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)))


def entries(part: str) -> list[Entry]:
    """The stored results of a part of the benchmark on the five corruptions."""
    results = stored_results(Store(STORE))
    cells = [cell for cell in PARTS[part]() if cell.corruption in FIVE]
    return [(cell, results[cell.key]) for cell in cells if cell.key in results]


def black_box_lines() -> economy_curve.Lines:
    """Accuracy within each budget, by method."""
    lines = economy_curve.lines(entries("curve"), line_of)
    paper = lowest_loss(Store(YARDSTICK))
    first = max(1 + curve_points(result)[0]["queries"] / cell.images for cell, result in paper)
    (points,) = economy_curve.lines(paper, lambda _: PAPER).values()
    lines[PAPER] = {budget: value for budget, value in points.items() if budget >= first}
    return lines


def white_box_levels() -> dict[str, float]:
    """The mean accuracy of each white-box method."""
    measured = entries("white")
    return {
        name: float(np.mean([accuracy_after(result) for cell, result in own]))
        for name in WHITE
        if len(own := [entry for entry in measured if entry[0].method == name]) == len(FIVE)
    }


def other_points() -> dict[str, tuple[float, float]]:
    """Mean queries per image and mean accuracy of each method without a curve."""
    points = {}
    for name in OTHERS:
        own = [
            result
            for cell, result in Store(FIRST_500)
            if cell.method == name and cell.corruption in FIVE
        ]
        if len(own) == len(FIVE):
            queries = float(np.mean([queries_per_image(result) for result in own]))
            points[name] = (queries, float(np.mean([accuracy_after(result) for result in own])))
    return points


def draw(out: Path) -> None:
    unadapted = float(np.mean([accuracy_before(result) for _, result in entries("white")]))
    with figure_factory() as make:
        figure = make(*SIZE)
        axes = figure.add_subplot()
        for index, (name, points) in enumerate(black_box_lines().items()):
            axes.plot(
                list(points),
                list(points.values()),
                label=name,
                linewidth=2.4 if name == "soda-e" else 1.1,
                markersize=5 if name == "soda-e" else 3.5,
                color=COLOURS[index % len(COLOURS)],
                marker=MARKERS[index % len(MARKERS)],
            )
        for name, (queries, level) in other_points().items():
            axes.plot(queries, level, "x", color="#7F7F7F", markersize=5)
            is_left = name in LABEL_LEFT
            axes.annotate(
                name,
                (queries, level),
                xytext=(-5 if is_left else 5, -3),
                textcoords="offset points",
                ha="right" if is_left else "left",
                fontsize=6.5,
                color="#555555",
            )
        for style, (name, level) in zip(STYLES, white_box_levels().items(), strict=True):
            axes.axhline(level, color="#555555", linewidth=1, linestyle=style)
            axes.lines[-1].set_label(f"{name} (white box): {level:.1f}")
        axes.axhline(unadapted, color="#BBBBBB", linewidth=1)
        axes.lines[-1].set_label(f"unadapted: {unadapted:.1f}")
        set_axes(axes)
        figure.legend(fontsize=7, loc="outside right upper")
        figure.savefig(out, format="svg", metadata={"Date": None})


def set_axes(axes: Any) -> None:
    axes.set_xscale("log")
    ticks = (1, *economy_curve.BUDGETS)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("queries per image, all purposes (log scale)")
    axes.set_ylabel("accuracy, %")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="draw nothing; compare")
    options = parser.parse_args()
    fresh = FIGURE.with_suffix(".fresh") if options.check else FIGURE
    draw(fresh)
    if options.check:
        same = fresh.read_bytes() == FIGURE.read_bytes()
        fresh.unlink()
        if not same:
            sys.exit("docs/economy.svg is out of date: python benchmarks/front_figure.py")


if __name__ == "__main__":
    main()

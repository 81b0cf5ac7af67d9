"""Accuracy against queries an image: the table and the figure of docs/economy.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pages import markdown
from soda_tta.bench import Cell
from soda_tta.bench.figure_data import curve
from soda_tta.bench.figures import COLOURS, MARKERS, plotting

BUDGETS = (2, 3, 5, 10, 30, 100, 300, 900)  # queries an image, all purposes
Results = list[tuple[Cell, dict[str, Any]]]
Lines = dict[str, dict[float, float]]  # by method and budget: mean accuracy


def lines(results: Results, label: Callable[[Cell], str]) -> Lines:
    """One line a method, over the corruptions that every budget of it was run on.

    soda-e plans for a budget, so each of its points is a run; where its search ended by itself, a larger budget is the
    same run. The others are followed along one run, whose last measurement within a budget counts. A method that has
    not begun within a budget has the unadapted accuracy.
    """
    found: Lines = {}
    for name in dict.fromkeys(label(cell) for cell, _ in results):
        own = whole([(cell, result) for cell, result in results if label(cell) == name])
        if not own:
            continue
        if own[0][0].curve:
            longest = max(result["queries_per_image"] for _, result in own)
            reached = [b for b in BUDGETS if b <= longest * 1.1]  # the next step would exceed it
            found[name] = {
                b: float(np.mean([within(cell, result, b) for cell, result in own]))
                for b in reached
            }
        else:
            found[name] = {
                2: float(np.mean([result["before"] for _, result in own]))
            }  # too little to search by
            for budget in sorted({cell.budget for cell, _ in own if cell.budget}):
                found[name][budget] = float(
                    np.mean([r["after"] for c, r in own if c.budget == budget])
                )
            largest = max(found[name])
            if all(r["queries_per_image"] < 0.9 * largest for c, r in own if c.budget == largest):
                found[name] |= {b: found[name][largest] for b in BUDGETS if b > largest}
    return found


def whole(own: Results) -> Results:
    """Only the corruptions that were run at every budget of a line."""
    places = [
        {c.corruption for c, _ in own if c.budget == budget}
        for budget in {c.budget for c, _ in own}
    ]
    shared = set.intersection(*places)
    return [(cell, result) for cell, result in own if cell.corruption in shared]


def within(cell: Cell, result: dict[str, Any], budget: float) -> float:
    """The accuracy a run that is followed would have ended with, had it stopped in time to answer within a budget."""
    points = [
        point for point in curve(result) if point["queries"] + cell.images <= budget * cell.images
    ]
    return float(points[-1]["accuracy"] if points else result["before"])


def table(found: Lines) -> str:
    head = ["queries an image, at most", *(f"{budget}" for budget in BUDGETS)]
    rows = [
        [name, *(f"{points[b]:.1f}" if b in points else "" for b in BUDGETS)]
        for name, points in found.items()
    ]
    return markdown([head, *rows])


def draw(found: Lines, out: Path) -> None:
    with plotting() as make:
        figure = make(7.6, 3.8)
        axes = figure.add_subplot()
        for index, (name, points) in enumerate(found.items()):
            style = {
                "color": COLOURS[index % len(COLOURS)],
                "marker": MARKERS[index % len(MARKERS)],
            }
            width = 2.2 if name == "soda-e" else 1.2
            axes.plot(
                list(points),
                list(points.values()),
                label=name,
                linewidth=width,
                markersize=4,
                **style,
            )
        axes.set_xscale("log")
        axes.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
        axes.minorticks_off()
        axes.set_xlabel("queries an image, all purposes")
        axes.set_ylabel("accuracy, %")
        figure.legend(fontsize=7, loc="outside right upper")
        figure.savefig(out, format="svg", metadata={"Date": None})

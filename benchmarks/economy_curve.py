"""Accuracy against queries per image: the table and the figure of docs/research/soda-e.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from cell_results import (
    Entry,
    Result,
    accuracy_after,
    accuracy_before,
    curve_points,
    queries_per_image,
)
from pages import markdown
from soda_tta.bench import Cell
from soda_tta.plotting import COLOURS, MARKERS, figure_factory

BUDGETS = (2, 3, 5, 10, 30, 100, 300, 900)  # queries per image, all purposes
NEXT_STEP = 1.1  # a run may stop this factor short of its budget: its next step would exceed it
ENDED_EARLY = 0.9  # a search that spent less than this share of its budget ended by itself
Points = dict[float, float]  # mean accuracy by budget
Lines = dict[str, Points]  # by method


def lines(entries: list[Entry], label: Callable[[Cell], str]) -> Lines:
    """One line per method, over the corruptions that were run at every budget."""
    by_name = {}
    for name in dict.fromkeys(label(cell) for cell, _ in entries):
        own = complete([entry for entry in entries if label(entry[0]) == name])
        if own:
            measured = own[0][0].curve
            by_name[name] = points_of_curve(own) if measured else points_of_budgets(own)
    return by_name


def complete(entries: list[Entry]) -> list[Entry]:
    """Only the corruptions that were run at every budget of a line."""
    by_budget = [
        {cell.corruption for cell, _ in entries if cell.budget == budget}
        for budget in {cell.budget for cell, _ in entries}
    ]
    shared = set.intersection(*by_budget)
    return [entry for entry in entries if entry[0].corruption in shared]


def points_of_curve(entries: list[Entry]) -> Points:
    """One run measured on the way: its last measurement within a budget counts."""
    longest = max(queries_per_image(result) for _, result in entries)
    return {
        budget: float(np.mean([accuracy_within(*entry, budget) for entry in entries]))
        for budget in BUDGETS
        if budget <= longest * NEXT_STEP
    }


def accuracy_within(cell: Cell, result: Result, budget: float) -> float:
    """The accuracy of a run that stopped in time for its final pass to fit into the budget."""
    points = [
        point
        for point in curve_points(result)
        if point["queries"] + cell.images <= budget * cell.images
    ]
    return float(points[-1]["accuracy"]) if points else accuracy_before(result)


def points_of_budgets(entries: list[Entry]) -> Points:
    """soda-e plans for a budget, so each point is a run.

    Two queries per image leave nothing to search with. If the search ended by itself, a larger
    budget would be the same run.
    """
    points: Points = {2: float(np.mean([accuracy_before(result) for _, result in entries]))}
    for budget in sorted({cell.budget for cell, _ in entries if cell.budget}):
        own = [accuracy_after(result) for cell, result in entries if cell.budget == budget]
        points[budget] = float(np.mean(own))
    largest = max(points)
    spent = [queries_per_image(result) for cell, result in entries if cell.budget == largest]
    if all(queries < ENDED_EARLY * largest for queries in spent):
        points |= {budget: points[largest] for budget in BUDGETS if budget > largest}
    return points


def table(by_name: Lines) -> str:
    """The lines as a Markdown table."""
    rows = [["queries per image, at most", *(f"{budget}" for budget in BUDGETS)]]
    for name, points in by_name.items():
        values = [f"{points[budget]:.1f}" if budget in points else "" for budget in BUDGETS]
        rows.append([name, *values])
    return markdown(rows)


def draw(by_name: Lines, out: Path) -> None:
    """The lines as an SVG figure."""
    with figure_factory() as make:
        figure = make(7.6, 3.8)
        axes = figure.add_subplot()
        for index, (name, points) in enumerate(by_name.items()):
            axes.plot(
                list(points),
                list(points.values()),
                label=name,
                linewidth=2.2 if name == "soda-e" else 1.2,
                markersize=4,
                color=COLOURS[index % len(COLOURS)],
                marker=MARKERS[index % len(MARKERS)],
            )
        axes.set_xscale("log")
        axes.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
        axes.minorticks_off()
        axes.set_xlabel("queries per image, all purposes")
        axes.set_ylabel("accuracy, %")
        figure.legend(fontsize=7, loc="outside right upper")
        figure.savefig(out, format="svg", metadata={"Date": None})

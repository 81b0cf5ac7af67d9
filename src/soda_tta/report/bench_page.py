"""The page of a bench store: its table, what each method gains and costs, and accuracy over queries."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.bench.figure_data import curve
from soda_tta.bench.store import Store
from soda_tta.bench.tables import column_names, in_order, make_table, once, what_varies
from soda_tta.report import figures
from soda_tta.report.page import render
from soda_tta.report.run_page import Figure

Entry = tuple[str, Cell, dict[str, Any]]


def bench_page(folder: Path) -> tuple[str, dict[str, Any]]:
    """HTML of a store, and its table as facts."""
    store = Store(folder)
    table = make_table(in_order(store))
    rows = table.cells() if len(store) else []
    entries = _named(store)
    gains = _gains(entries)
    html = render(
        "bench.html",
        title=folder.resolve().name,
        count=len(store),
        rows=rows,
        best=[
            None if what_varies(store) else best_of(row) for row in rows[1:-1]
        ],  # else it is no contest
        gains=gains,
        curves=_curves(entries),
        protocol=table.told(),
        time=_time(sum(result["seconds"] for _, result in store)),
        queries=sum(sum(result["queries"].values()) for _, result in store),
        unfinished=_unfinished(folder),
    )
    return html, {
        "title": folder.resolve().name,
        "cells": len(store),
        "table": rows,
        "gains": gains,
    }


def best_of(row: list[str]) -> int | None:
    """The column of the highest accuracy of a row."""
    values = {place: float(text.split()[0]) for place, text in enumerate(row) if place and text}
    return max(values, key=lambda place: values[place]) if len(values) > 1 else None


def _gains(entries: list[Entry]) -> list[dict[str, Any]]:
    """For each column of the table, over all its cells: the mean accuracy before and after, and how often it harms."""
    cells: dict[str, list[dict[str, Any]]] = defaultdict(list)
    corrupted = [
        entry for entry in entries if entry[1].corruption != CLEAN
    ]  # as in the table's mean
    for name, _, result in corrupted or entries:
        cells[name].append(result)
    rows = [
        {
            "name": name,
            "cells": len(results),
            **{part: round(mean(result[part] for result in results), 2) for part in MEANS},
            "gain": round(mean(result["after"] - result["before"] for result in results), 2),
            "worse": sum(result["after"] < result["before"] for result in results),
        }
        for name, results in cells.items()
    ]
    return sorted(rows, key=lambda row: -float(row["gain"]))


MEANS = ("before", "after", "queries_per_image", "seconds")


def _named(store: Store) -> list[Entry]:
    """Every cell with the name of its column in the table."""
    entries = once(store)
    return [(name, *entry) for name, entry in zip(column_names(entries), entries, strict=True)]


def _curves(entries: list[Entry]) -> list[Figure]:
    """Accuracy over queries, a figure a corruption; of several learning rates, the one that was kept."""
    series: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(dict)
    for name, cell, result in entries:
        points = curve(result)
        if len(points) < 2:
            continue
        line = [(0.0, result["before"]), *((p["queries"], p["accuracy"]) for p in points)]
        several = name in series[cell.corruption]
        series[cell.corruption][f"{name}, seed {cell.seed}" if several else name] = line
    return [
        Figure(
            figures.lines(lines, f"{place}: accuracy over queries", "queries", "accuracy in %"),
            f"{place.replace('_', ' ')}: true accuracy while learning, measured by the bench at no cost to the run.",
        )
        for place, lines in series.items()
    ]


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def _unfinished(folder: Path) -> int:
    """Cells that were begun and have not ended."""
    working = folder / "working"
    return sum(path.is_dir() for path in working.iterdir()) if working.is_dir() else 0

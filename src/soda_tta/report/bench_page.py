"""The page of a bench store: its table, gains and costs by method, and accuracy over queries."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.bench.columns import column_names, differing_facts, distinct, in_order
from soda_tta.bench.result import CellResult, Entry
from soda_tta.bench.store import Store
from soda_tta.bench.tables import make_table
from soda_tta.report import figures
from soda_tta.report.page import Figure, render


@dataclass(frozen=True)
class Measurement:
    """What the page needs of one cell; the only place here that reads a cell's result."""

    column: str  # the name of its column in the table
    corruption: str
    seed: int
    before: float  # accuracy in %
    after: float
    queries: int
    queries_per_image: float
    seconds: float
    curve: list[tuple[float, float]]  # queries and accuracy while learning


def _measurement(column: str, cell: Cell, result: CellResult) -> Measurement:
    return Measurement(
        column=column,
        corruption=cell.corruption,
        seed=cell.seed,
        before=result.before,
        after=result.after,
        queries=sum(result.queries.values()),
        queries_per_image=result.queries_per_image,
        seconds=result.seconds,
        curve=[(point["queries"], point["accuracy"]) for point in result.chosen_curve()],
    )


@dataclass(frozen=True)
class Gain:
    """Means over the cells of one column of the table."""

    name: str
    cells: int
    before: float
    after: float
    queries_per_image: float
    seconds: float
    gain: float  # in points
    worse: int  # cells whose accuracy fell


def bench_page(folder: Path) -> tuple[str, dict[str, Any]]:
    """The HTML of a bench store, and its tables as plain JSON."""
    store = Store(folder)
    title = folder.resolve().name
    table = make_table(in_order(store))
    rows = table.cells() if len(store) else []
    # cells that differ in more than the method do not compete with each other
    comparable = not differing_facts(cell for cell, _ in store)
    cells = _measurements(distinct(store))
    gains = _gains(cells)
    all_cells = _measurements(list(store))
    html = render(
        "bench.html",
        title=title,
        count=len(store),
        rows=rows,
        best=[best_column(row) if comparable else None for row in rows[1:-1]],
        gains=gains,
        curves=_curves(cells),
        protocol=table.protocol_text(),
        time=_duration(sum(cell.seconds for cell in all_cells)),
        queries=sum(cell.queries for cell in all_cells),
        unfinished=_unfinished(folder),
    )
    facts = {
        "title": title,
        "cells": len(store),
        "table": rows,
        "gains": [asdict(gain) for gain in gains],
    }
    return html, facts


def best_column(row: list[str]) -> int | None:
    """The position of the highest accuracy in a row of the table; None if there is only one.

    >>> best_column(["fog", "41.0", "52.3 ± 0.7", ""])
    2
    """
    values = {
        position: float(text.split()[0]) for position, text in enumerate(row) if position and text
    }
    return max(values, key=lambda position: values[position]) if len(values) > 1 else None


def _measurements(entries: list[Entry]) -> list[Measurement]:
    """Every cell with the name of its column in the table."""
    columns = column_names([cell for cell, _ in entries])
    return [
        _measurement(column, cell, result)
        for column, (cell, result) in zip(columns, entries, strict=True)
    ]


def _gains(cells: list[Measurement]) -> list[Gain]:
    """For each column, means over its cells; clean images are excluded, as in the table's mean."""
    corrupted = [cell for cell in cells if cell.corruption != CLEAN]
    by_column: dict[str, list[Measurement]] = defaultdict(list)
    for cell in corrupted or cells:
        by_column[cell.column].append(cell)
    gains = [
        Gain(
            name=column,
            cells=len(group),
            before=round(mean(cell.before for cell in group), 2),
            after=round(mean(cell.after for cell in group), 2),
            queries_per_image=round(mean(cell.queries_per_image for cell in group), 2),
            seconds=round(mean(cell.seconds for cell in group), 2),
            gain=round(mean(cell.after - cell.before for cell in group), 2),
            worse=sum(cell.after < cell.before for cell in group),
        )
        for column, group in by_column.items()
    ]
    return sorted(gains, key=lambda gain: -gain.gain)


def _curves(cells: list[Measurement]) -> list[Figure]:
    """Accuracy over queries, one figure per corruption; only the learning rate that was kept."""
    series: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(dict)
    for cell in cells:
        if len(cell.curve) < 2:
            continue
        curves = series[cell.corruption]
        name = f"{cell.column}, seed {cell.seed}" if cell.column in curves else cell.column
        curves[name] = [(0.0, cell.before), *cell.curve]
    return [
        Figure(
            figures.lines(
                curves, f"{corruption}: accuracy over queries", "queries", "accuracy in %"
            ),
            f"{corruption.replace('_', ' ')}: true accuracy while learning. The bench measures it "
            "with queries that are not counted.",
        )
        for corruption, curves in series.items()
    ]


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def _unfinished(folder: Path) -> int:
    """How many cells were started and have not finished."""
    working = folder / "working"
    return sum(path.is_dir() for path in working.iterdir()) if working.is_dir() else 0

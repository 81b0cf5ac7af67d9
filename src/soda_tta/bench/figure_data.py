"""The settings behind each figure, from a store, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean
from typing import Any

from soda_tta.bench.cell import Cell
from soda_tta.bench.store import Store
from soda_tta.bench.tables import column_names, make_table, once, what_varies
from soda_tta.errors import SodaError

Entry = tuple[Cell, dict[str, Any]]
Point = dict[str, float]


def series_names(entries: list[Entry]) -> list[str]:
    """A name for every cell: only seeds share one."""
    names = column_names(entries)
    if len({cell.corruption for cell, _ in entries}) == 1:
        return names
    return [
        f"{name}, {cell.corruption.replace('_', ' ')}"
        for name, (cell, _) in zip(names, entries, strict=True)
    ]


def curve(result: dict[str, Any]) -> list[Point]:
    """The points of the lr that was chosen; its rivals were dropped on the way."""
    chosen = result["card"].get("chosen_lr")
    return [point for point in result["curve"] if chosen is None or point["lr"] == chosen]


def convergence(store: Store) -> dict[str, Any]:
    """Accuracy by epoch, the mean of the seeds; and of the model as it is."""
    entries = once(entry for entry in store if entry[1]["curve"])
    wanted(entries, "cells with a curve", "convergence")
    series: dict[str, dict[int, list[Point]]] = {}
    for name, (cell, result) in zip(series_names(entries), entries, strict=True):
        for point in [
            {"epoch": 0, "queries": cell.images, "accuracy": result["before"]},
            *curve(result),
        ]:
            paid = {**point, "queries_per_image": point["queries"] / cell.images}
            series.setdefault(name, {}).setdefault(int(point["epoch"]), []).append(paid)
    facts = ("accuracy", "queries_per_image")
    return {
        "series": {
            name: [
                {"epoch": e, **{f: mean(p[f] for p in points) for f in facts}}
                for e, points in sorted(by.items())
            ]
            for name, by in series.items()
        }
    }


def queries(store: Store) -> dict[str, Any]:
    """Accuracy against queries an image: a point a column of the table, over the corruptions all columns have."""
    table = make_table(wanted(list(store), "cells", "small"))
    if not table.shared:
        raise SodaError(
            "no corruption is there for every method of this store; run more of its grid."
        )
    return {
        "corruptions": table.shared,
        "points": [
            {
                "name": column,
                "queries_per_image": mean(table.queries[column]),
                "accuracy": mean(mean(table.values[row, column]) for row in table.shared),
            }
            for column in table.columns
        ],
    }


def heat(store: Store) -> dict[str, Any]:
    """Accuracy by tau and rho, one map an alpha, a row of them a corruption."""
    entries = [entry for entry in store if {"tau", "rho", "alpha"} <= entry[0].settings.keys()]
    wanted(entries, "cells that vary tau, rho and alpha", "selection")
    mixed = what_varies(entries) + ["method"] * (len({cell.method for cell, _ in entries}) > 1)
    if mixed:
        raise SodaError(
            f"a map is of one experiment, and these cells differ in {', '.join(mixed)}; give a store each."
        )
    axes = {
        name: sorted({cell.settings[name] for cell, _ in entries})
        for name in ("alpha", "tau", "rho")
    }
    found: dict[tuple[Any, ...], list[float]] = {}
    for cell, result in entries:
        found.setdefault((cell.corruption, *(cell.settings[name] for name in axes)), []).append(
            result["after"]
        )
    maps = {
        c: {
            str(a): [
                [mean(found[c, a, t, r]) if (c, a, t, r) in found else None for t in axes["tau"]]
                for r in axes["rho"]
            ]
            for a in axes["alpha"]
        }
        for c in dict.fromkeys(cell.corruption for cell, _ in entries)
    }
    return {
        "tau": axes["tau"],
        "rho": axes["rho"],
        "accuracy": maps,
    }  # by corruption, alpha, rho, tau


def points(store: Store) -> dict[str, Any]:
    """Accuracy by the number of test images, before and after."""
    entries = once(store)
    wanted(
        entries if len({cell.images for cell, _ in entries}) > 1 else [],
        "cells that vary images",
        "points",
    )
    series: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for (cell, result), name in zip(
        entries, column_names(entries, beside=("images",)), strict=True
    ):
        by = series.setdefault(f"{name}, {cell.corruption.replace('_', ' ')}", {})
        by.setdefault(cell.images, []).append((result["before"], result["after"]))
    return {
        "series": {
            name: [
                {
                    "images": n,
                    "before": mean(b for b, _ in pairs),
                    "after": mean(a for _, a in pairs),
                }
                for n, pairs in sorted(by.items())
            ]
            for name, by in series.items()
        }
    }


def wanted(entries: Iterable[Entry], what: str, grid: str) -> list[Entry]:
    found = list(entries)
    if not found:
        raise SodaError(
            f"this store has no {what}; run 'soda-tta bench run {grid} --out DIR' for this figure."
        )
    return found

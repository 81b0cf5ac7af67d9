"""The data of the figures that need only the results of a store, as JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from soda_tta.bench.columns import column_names, differing_facts, distinct
from soda_tta.bench.result import Entry
from soda_tta.bench.store import Store
from soda_tta.bench.tables import make_table
from soda_tta.errors import SodaError

Point = dict[str, float]


def series_names(entries: list[Entry]) -> list[str]:
    """A name for every cell; only seeds share one."""
    names = column_names([cell for cell, _ in entries])
    if len({cell.corruption for cell, _ in entries}) == 1:
        return names
    return [
        f"{name}, {cell.corruption.replace('_', ' ')}"
        for name, (cell, _) in zip(names, entries, strict=True)
    ]


def convergence(store: Store) -> dict[str, Any]:
    """Accuracy by epoch, the mean of the seeds; epoch 0 is the deployed model."""
    entries = distinct(entry for entry in store if entry[1].curve)
    require(entries, "cells with a curve", "convergence")
    series: dict[str, dict[int, list[Point]]] = {}
    for name, (cell, result) in zip(series_names(entries), entries, strict=True):
        start = {"epoch": 0, "queries": cell.images, "accuracy": result.before}
        for point in [start, *result.chosen_curve()]:
            with_cost = {**point, "queries_per_image": point["queries"] / cell.images}
            series.setdefault(name, {}).setdefault(int(point["epoch"]), []).append(with_cost)
    return {
        "series": {
            name: [mean_point(epoch, points) for epoch, points in sorted(by_epoch.items())]
            for name, by_epoch in series.items()
        }
    }


def mean_point(epoch: int, points: list[Point]) -> Point:
    """The mean of the seeds at one epoch."""
    return {
        "epoch": epoch,
        "accuracy": mean(point["accuracy"] for point in points),
        "queries_per_image": mean(point["queries_per_image"] for point in points),
    }


def queries(store: Store) -> dict[str, Any]:
    """Accuracy against queries per image, one point per column of the store's table.

    The accuracy is the mean over the corruptions that all columns have.
    """
    entries = list(store)
    require(entries, "cells", "small")
    table = make_table(entries)
    means = table.means()
    if not means:
        raise SodaError(
            "no corruption was run with every method of this store; run more of its grid."
        )
    return {
        "corruptions": table.averaged_rows,
        "points": [
            {
                "name": column,
                "queries_per_image": mean(table.queries[column]),
                "accuracy": means[column],
            }
            for column in table.columns
        ],
    }


def heat(store: Store) -> dict[str, Any]:
    """Accuracy by corruption, alpha, rho and tau."""
    entries = [entry for entry in store if {"tau", "rho", "alpha"} <= entry[0].settings.keys()]
    require(entries, "cells that vary tau, rho and alpha", "selection")
    check_one_experiment(entries)
    alphas, rhos, taus = (
        sorted({cell.settings[name] for cell, _ in entries}) for name in ("alpha", "rho", "tau")
    )
    values: dict[tuple[Any, ...], list[float]] = {}
    for cell, result in entries:
        place = (cell.corruption, *(cell.settings[name] for name in ("alpha", "rho", "tau")))
        values.setdefault(place, []).append(result.after)
    means = {place: mean(seeds) for place, seeds in values.items()}
    corruptions = dict.fromkeys(cell.corruption for cell, _ in entries)
    maps = {
        corruption: {
            str(alpha): [[means.get((corruption, alpha, rho, tau)) for tau in taus] for rho in rhos]
            for alpha in alphas
        }
        for corruption in corruptions
    }
    return {"tau": taus, "rho": rhos, "accuracy": maps}


def check_one_experiment(entries: Sequence[Entry]) -> None:
    """Refuse a map of cells that differ in more than its axes."""
    cells = [cell for cell, _ in entries]
    facts = differing_facts(cells)
    if len({cell.method for cell in cells}) > 1:
        facts.append("method")
    if facts:
        raise SodaError(
            f"a map shows one experiment, and these cells differ in {', '.join(facts)}; "
            "use one store for each."
        )


def points(store: Store) -> dict[str, Any]:
    """Accuracy before and after, by the number of test images."""
    entries = distinct(store)
    several = len({cell.images for cell, _ in entries}) > 1
    require(entries if several else [], "cells that vary images", "points")
    series: dict[str, dict[int, list[tuple[float, float]]]] = {}
    names = column_names([cell for cell, _ in entries], leave_out=("images",))
    for (cell, result), name in zip(entries, names, strict=True):
        by_count = series.setdefault(f"{name}, {cell.corruption.replace('_', ' ')}", {})
        by_count.setdefault(cell.images, []).append((result.before, result.after))
    return {
        "series": {
            name: [
                {
                    "images": count,
                    "before": mean(before for before, _ in seeds),
                    "after": mean(after for _, after in seeds),
                }
                for count, seeds in sorted(by_count.items())
            ]
            for name, by_count in series.items()
        }
    }


def require(entries: Sequence[Entry], what: str, grid: str) -> None:
    """Refuse a store without the cells that a figure shows."""
    if not entries:
        raise SodaError(
            f"this store has no {what}; run 'soda-tta bench run {grid} --out DIR' for this figure."
        )

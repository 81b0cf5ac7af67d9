"""Which rate for a desk, and when may lr=auto choose? From runs at every rate: `soda-tta bench run rates`.

    python benchmarks/rate_choice.py

No label is used: a rate is as good as the loss it ends with. The tables are part of docs/reproduction.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

from pages import NOTHING, markdown
from soda_tta.bench import Cell, Store
from soda_tta.bench.figure_data import curve
from soda_tta.engine.plan import RUNGS
from soda_tta.methods.loop_method import LEARNING_RATES

STORE = Path(__file__).parents[1] / "results" / "rates"
Schedule = tuple[tuple[float, int], ...]  # share of the epochs, rates that go on
SCHEDULES: dict[str, Schedule] = {
    "2 after 5 %, 1 after 20 %": ((0.05, 2), (0.2, 1)),
    "3 after 5 %, 2 after 20 %, 1 after 50 %": ((0.05, 3), (0.2, 2), (0.5, 1)),
    "3 after 5 %, 2 after 20 %, 1 at the end": ((0.05, 3), (0.2, 2), (1.0, 1)),
    "all to the end": ((1.0, 1),),
}
Losses = list[float]  # of each epoch
Entry = tuple[Cell, dict[str, Any]]


def final_loss(losses: Losses) -> float:
    """The mean over the last fifth of the epochs."""
    return mean(losses[math.floor(0.8 * len(losses)) :])


def end_of(cell: Cell, result: dict[str, Any]) -> float:
    """The loss a run ends with; of cells older than "losses", of the last steps of the epochs that were measured.

    A stream answers while it learns, so all of it counts.
    """
    losses: Losses = result.get("losses") or [point["loss"] for point in curve(result)]
    return mean(losses) if cell.method == "soda-o" else final_loss(losses)


def least_loss(found: Iterable[Entry]) -> list[Entry]:
    """Of runs that differ in their rate alone, the one that ends with the least loss."""
    best: dict[tuple[str, str, int], tuple[float, Entry]] = {}
    for cell, result in found:
        end = end_of(cell, result)
        place = (cell.data, cell.corruption, cell.seed)
        if place not in best or end < best[place][0]:
            best[place] = (end, (cell, result))
    return [entry for _, entry in best.values()]


def taken(runs: dict[float, Losses], schedule: Schedule) -> float:
    """The rate that is left in the end."""
    left, epochs = list(runs), min(map(len, runs.values()))
    for share, kept in schedule:
        rung = max(1, math.ceil(share * epochs))
        left = sorted(left, key=lambda rate: runs[rate][rung - 1])[:kept]
    return left[0]


def cost(schedule: Schedule, rates: int) -> float:
    """In runs at one rate."""
    total, reached = 0.0, 0.0
    for share, kept in schedule:
        total += rates * (share - reached)
        rates, reached = min(rates, kept), share
    return total + 1 - reached


def ends(store: Store, data: str = "cifar10") -> dict[str, dict[float, float]]:
    """For each method the mean loss at the end of its runs, by rate; only of rates run on every corruption."""
    found: dict[str, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for cell, result in store:
        if isinstance(cell.settings.get("lr"), float) and (cell.data, cell.seed) == (data, 0):
            found[cell.method][cell.settings["lr"]][cell.corruption] = end_of(cell, result)
    most = max((len(where) for rates in found.values() for where in rates.values()), default=0)
    return {
        method: {rate: mean(where.values()) for rate, where in rates.items() if len(where) == most}
        for method, rates in found.items()
    }


def ends_text(store: Store, data: str = "cifar10") -> str:
    found = ends(store, data)
    if not found:
        return NOTHING
    lines = [["lr", *found]]
    for rate in sorted({rate for rates in found.values() for rate in rates}, reverse=True):
        least = {
            method: rate == min(rates, key=lambda each: rates[each])
            for method, rates in found.items()
            if rates
        }
        shown = [f"{rates[rate]:.3f}" if rate in rates else "" for rates in found.values()]
        bold = [
            f"**{text}**" if least.get(method) else text
            for method, text in zip(found, shown, strict=True)
        ]
        lines.append([f"{rate:g}", *bold])
    return markdown(lines)


def schedules_text(store: Store) -> str:
    runs: dict[tuple[str, str], dict[float, Losses]] = defaultdict(dict)
    for cell, result in store:
        rate = cell.settings.get("lr")
        raced = cell.method in ("soda", "soda-fo")  # the others have no lr=auto
        if (
            raced
            and result.get("losses")
            and rate in LEARNING_RATES
            and (cell.data, cell.seed) == ("cifar10", 0)
        ):
            runs[cell.method, cell.corruption][rate] = result["losses"]
    runs = {name: found for name, found in runs.items() if set(found) == set(LEARNING_RATES)}
    if not runs:
        return NOTHING
    lines = [
        [
            "",
            *(f"{method}, {where.replace('_', ' ')}" for method, where in runs),
            "loss above the least",
            "runs",
        ]
    ]
    ends = [{rate: final_loss(losses) for rate, losses in found.items()} for found in runs.values()]
    for name, schedule in SCHEDULES.items():
        rates = [taken(found, schedule) for found in runs.values()]
        above = mean(end[rate] - min(end.values()) for end, rate in zip(ends, rates, strict=True))
        label = f"**{name}** (lr=auto)" if schedule == RUNGS else name
        paid = cost(schedule, len(LEARNING_RATES))
        lines.append([label, *(f"{rate:g}" for rate in rates), f"{above:.3f}", f"{paid:.2f}"])
    best = [min(end, key=lambda rate: end[rate]) for end in ends]
    lines.append(["least loss over the last fifth", *(f"{rate:g}" for rate in best), "0", ""])
    return markdown(lines)


if __name__ == "__main__":
    print(ends_text(Store(STORE)), schedules_text(Store(STORE)), sep="\n\n")

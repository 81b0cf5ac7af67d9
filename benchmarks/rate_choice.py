"""Which learning rate at desk scale, and when can lr=auto choose? From runs at every rate.

    soda-tta bench run rates --out results/rates
    python benchmarks/rate_choice.py

No label is used: a learning rate is judged by the loss its run ends with. The tables are part of
docs/research/reproduction.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

from cell_results import Entry, Result, curve_points, epoch_losses
from pages import NOT_RUN, markdown
from soda_tta.bench import Cell, Store
from soda_tta.engine.rates import RUNGS
from soda_tta.methods.loop_method import LEARNING_RATES

STORE = Path(__file__).parents[1] / "results" / "rates"
LAST_FIFTH = 0.8  # the final loss is the mean over the epochs after this share
RACED = ("soda", "soda-fo")  # the methods that have lr=auto
Schedule = tuple[tuple[float, int], ...]  # share of the epochs, rates that remain after it
SCHEDULES: dict[str, Schedule] = {
    "2 after 5 %, 1 after 20 %": ((0.05, 2), (0.2, 1)),
    "3 after 5 %, 2 after 20 %, 1 after 50 %": ((0.05, 3), (0.2, 2), (0.5, 1)),
    "3 after 5 %, 2 after 20 %, 1 at the end": ((0.05, 3), (0.2, 2), (1.0, 1)),
    "all to the end": ((1.0, 1),),
}
Losses = list[float]  # one per epoch


def final_loss(losses: Losses) -> float:
    """The mean loss over the last fifth of the epochs."""
    return mean(losses[math.floor(LAST_FIFTH * len(losses)) :])


def final_loss_of(cell: Cell, result: Result) -> float:
    """The loss a run ends with.

    Cells that are older than the stored losses use the last steps of the measured epochs. A stream
    predicts while it learns, so all of its losses count.
    """
    losses = epoch_losses(result) or [point["loss"] for point in curve_points(result)]
    return mean(losses) if cell.method == "soda-o" else final_loss(losses)


def lowest_loss(entries: Iterable[Entry]) -> list[Entry]:
    """Of runs that differ only in their learning rate, the one with the lowest final loss."""
    best: dict[tuple[str, str, int], tuple[float, Entry]] = {}
    for cell, result in entries:
        loss = final_loss_of(cell, result)
        run_input = (cell.data, cell.corruption, cell.seed)
        if run_input not in best or loss < best[run_input][0]:
            best[run_input] = (loss, (cell, result))
    return [entry for _, entry in best.values()]


def chosen_rate(runs: dict[float, Losses], schedule: Schedule) -> float:
    """The learning rate that a schedule would choose."""
    remaining = list(runs)
    epochs = min(map(len, runs.values()))
    for share, count in schedule:
        epoch = max(1, math.ceil(share * epochs))
        remaining = sorted(remaining, key=lambda rate: runs[rate][epoch - 1])[:count]
    return remaining[0]


def schedule_cost(schedule: Schedule, rates: int) -> float:
    """The cost of a schedule, in runs at one learning rate."""
    total = 0.0
    reached = 0.0
    for share, count in schedule:
        total += rates * (share - reached)
        rates = min(rates, count)
        reached = share
    return total + 1 - reached


def mean_final_losses(store: Store, data: str = "cifar10") -> dict[str, dict[float, float]]:
    """By method and rate the mean final loss; only rates that were run on every corruption."""
    losses: dict[str, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for cell, result in store:
        rate = cell.settings.get("lr")
        if isinstance(rate, float) and (cell.data, cell.seed) == (data, 0):
            losses[cell.method][rate][cell.corruption] = final_loss_of(cell, result)
    counts = [len(by_place) for rates in losses.values() for by_place in rates.values()]
    complete = max(counts, default=0)
    return {
        method: {
            rate: mean(by_place.values())
            for rate, by_place in rates.items()
            if len(by_place) == complete
        }
        for method, rates in losses.items()
    }


def final_loss_table(store: Store, data: str = "cifar10") -> str:
    """The final losses by learning rate; the lowest of each method in bold."""
    losses = mean_final_losses(store, data)
    if not losses:
        return NOT_RUN
    lines = [["lr", *losses]]
    for rate in sorted({rate for rates in losses.values() for rate in rates}, reverse=True):
        line = [f"{rate:g}"]
        for rates in losses.values():
            text = f"{rates[rate]:.3f}" if rate in rates else ""
            lowest = bool(rates) and rate == min(rates, key=lambda each: rates[each])
            line.append(f"**{text}**" if lowest else text)
        lines.append(line)
    return markdown(lines)


def raced_runs(store: Store) -> dict[tuple[str, str], dict[float, Losses]]:
    """The losses per epoch by method and corruption, where every rate of lr=auto was run."""
    runs: dict[tuple[str, str], dict[float, Losses]] = defaultdict(dict)
    for cell, result in store:
        rate = cell.settings.get("lr")
        losses = epoch_losses(result)
        comparable = cell.method in RACED and (cell.data, cell.seed) == ("cifar10", 0)
        if comparable and losses and rate in LEARNING_RATES:
            runs[cell.method, cell.corruption][rate] = losses
    return {name: rates for name, rates in runs.items() if set(rates) == set(LEARNING_RATES)}


def schedule_table(store: Store) -> str:
    """What each schedule would choose, how far that is from the best, and what it costs."""
    runs = raced_runs(store)
    if not runs:
        return NOT_RUN
    names = [f"{method}, {place.replace('_', ' ')}" for method, place in runs]
    lines = [["", *names, "loss above the lowest", "runs"]]
    final = [
        {rate: final_loss(losses) for rate, losses in rates.items()} for rates in runs.values()
    ]
    for name, schedule in SCHEDULES.items():
        chosen = [chosen_rate(rates, schedule) for rates in runs.values()]
        above = mean(
            losses[rate] - min(losses.values()) for losses, rate in zip(final, chosen, strict=True)
        )
        label = f"**{name}** (lr=auto)" if schedule == RUNGS else name
        cost = schedule_cost(schedule, len(LEARNING_RATES))
        lines.append([label, *(f"{rate:g}" for rate in chosen), f"{above:.3f}", f"{cost:.2f}"])
    best = [min(losses, key=lambda rate: losses[rate]) for losses in final]
    lines.append(["lowest loss over the last fifth", *(f"{rate:g}" for rate in best), "0", ""])
    return markdown(lines)


if __name__ == "__main__":
    print(final_loss_table(Store(STORE)), schedule_table(Store(STORE)), sep="\n\n")

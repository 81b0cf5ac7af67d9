"""The tables of docs/research/soda-e.md, from results/economy and results/yardstick."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import economy_curve
import objectives
import transports
import verdict_power
import verdicts
from cell_results import (
    Entry,
    Result,
    accuracy_after,
    accuracy_before,
    accuracy_gain,
    adaptor_text,
    curve_points,
    queries_per_image,
    stored_results,
    verdict_facts,
)
from economy_parts import CURVE, FEW, PARTS, SEARCHES, SIX
from pages import NOT_RUN, markdown
from rate_choice import lowest_loss
from soda_tta.bench import Cell, Store
from soda_tta.methods.soda import soda

YARDSTICK = Path(__file__).parents[1] / "results" / "yardstick"
BY_CORRUPTION = ("cifar10", "cifar100", "architecture", "imagenet", "white")


def page_tables(store: Store) -> dict[str, str]:
    """Every table of the page by the name of its marker."""
    results = stored_results(store)
    parts = {
        name: [(cell, results[cell.key]) for cell in cells() if cell.key in results]
        for name, cells in PARTS.items()
    }
    tables = {name: by_corruption(parts[name]) for name in BY_CORRUPTION}
    for script in (objectives, transports, verdicts, verdict_power):
        tables[script.__name__] = script.table() if script.OUT.exists() else NOT_RUN
    return {
        **tables,
        "few": few_images(parts["few"], parts["cifar10"]),
        "clean": one_row_per_cell(parts["clean"]),
        "pacs": one_row_per_cell(parts["pacs"]),
        "yardstick": yardstick(parts["cifar10"], parts["white"]),
        "curve": economy_curve.table(curve_lines(store)),
        "ablation": ablation(parts["ablation"]),
        "elsewhere": elsewhere(parts["elsewhere"]),
    }


def by_corruption(entries: list[Entry]) -> str:
    """One row per corruption, one column per method and budget, and what soda-e does."""
    results = {(column_name(cell), cell.corruption): result for cell, result in entries}
    columns = list(dict.fromkeys(column_name(cell) for cell, _ in entries))
    corruptions = [
        corruption
        for corruption in dict.fromkeys(cell.corruption for cell, _ in entries)
        if all((column, corruption) in results for column in columns)
    ]
    if not corruptions:
        return NOT_RUN
    lines = [["", "unadapted", *columns, f"what {columns[0]} does"]]
    for corruption in corruptions:
        row = [results[column, corruption] for column in columns]
        accuracies = [accuracy_after(result) for result in row]
        unadapted = f"{accuracy_before(row[0]):.1f}"
        name = corruption.replace("_", " ")
        lines.append([name, unadapted, *emphasise_best(accuracies), adaptor_text(row[0])])
    means = []
    queries = []
    for column in columns:
        own = [results[column, corruption] for corruption in corruptions]
        means.append(float(np.mean([accuracy_after(result) for result in own])))
        queries.append(f"{np.mean([queries_per_image(result) for result in own]):.2f}")
    start = np.mean([accuracy_before(results[columns[0], c]) for c in corruptions])
    lines.append([f"**mean of {len(corruptions)}**", f"{start:.1f}", *emphasise_best(means), ""])
    lines.append(["queries per image", "1", *queries, ""])
    return markdown(lines)


def column_name(cell: Cell) -> str:
    return cell.method if cell.budget is None else f"{cell.method}, budget {cell.budget:g}"


def emphasise_best(values: list[float]) -> list[str]:
    """Each value with one digit; the highest in bold."""
    best = max(values)
    return [f"**{value:.1f}**" if value == best else f"{value:.1f}" for value in values]


def few_images(few: list[Entry], full: list[Entry]) -> str:
    """The gain with few images, as a share of the gain with all."""
    full_gains = {
        cell.corruption: accuracy_gain(result)
        for cell, result in full
        if cell.method == "soda-e" and cell.budget == 5
    }
    few_gains = {cell.corruption: accuracy_gain(result) for cell, result in few}
    shared = [corruption for corruption in few_gains if corruption in full_gains]
    if not shared:
        return NOT_RUN
    small = float(np.mean([few_gains[corruption] for corruption in shared]))
    large = float(np.mean([full_gains[corruption] for corruption in shared]))
    queries = np.mean([queries_per_image(result) for _, result in few])
    return (
        f"Mean gain over {len(shared)} corruptions: {small:.1f} points with {FEW} images at "
        f"{queries:.0f} queries per image; {large:.1f} points with all 10,000 images and a budget "
        f"of 5. That is **{small / large:.0%}** of it."
    )


def one_row_per_cell(entries: list[Entry]) -> str:
    """Accuracies, queries and verdict of every cell."""
    if not entries:
        return NOT_RUN
    lines = [["images", "unadapted", "soda-e", "queries per image", "verdict"]]
    for cell, result in entries:
        measures = (accuracy_before(result), accuracy_after(result), queries_per_image(result))
        facts = verdict_facts(result)
        verdict = "no move helped"
        if facts is not None:
            verdict = f"adopt: {facts['adopt']}, p = {facts['p_value']:.2g}"
        name = f"{cell.data}, {cell.corruption}, {cell.images:,}"
        lines.append([name, *(f"{value:.2f}" for value in measures), verdict])
    return markdown(lines)


def ablation(entries: list[Entry]) -> str:
    """Accuracy with one part left out."""
    if not entries:
        return NOT_RUN
    lines = [["", *(corruption.replace("_", " ") for corruption in SIX), "mean"]]
    for name in dict.fromkeys(ablation_name(cell) for cell, _ in entries):
        accuracies = {
            cell.corruption: accuracy_after(result)
            for cell, result in entries
            if ablation_name(cell) == name
        }
        if len(accuracies) == len(SIX):
            values = [accuracies[corruption] for corruption in SIX]
            mean = np.mean(list(accuracies.values()))
            lines.append([name, *(f"{value:.1f}" for value in values), f"{mean:.1f}"])
    return markdown(lines)


def ablation_name(cell: Cell) -> str:
    change = changed_settings(cell)
    return f"{cell.method} ({change})" if change else cell.method


def changed_settings(cell: Cell) -> str:
    """The settings that differ from the method's own, as `--set` takes them."""
    return ", ".join(
        f"{name}={value}" for name, value in cell.settings.items() if name not in ("lr", "epochs")
    )


def elsewhere(entries: list[Entry]) -> str:
    """Accuracy with a part and without it; few images as a mean over all corruptions."""
    complete = {input_of(cell): result for cell, result in entries if not cell.settings}
    groups: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for cell, result in entries:
        full = complete.get(input_of(cell))
        if cell.settings and full:
            corruptions = "mean of 19 corruptions"
            if cell.images > FEW:
                corruptions = cell.corruption.replace("_", " ")
            name = f"{cell.data}, {corruptions}, {cell.images:,} images"
            row = (accuracy_before(full), accuracy_after(full), accuracy_after(result))
            groups.setdefault((name, changed_settings(cell)), []).append(row)
    lines = [["images", "unadapted", "soda-e", "change", "soda-e with the change"]]
    for (name, change), rows in groups.items():
        before, after, changed = (f"{value:.1f}" for value in np.mean(rows, axis=0))
        lines.append([name, before, after, change, changed])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def input_of(cell: Cell) -> tuple[str, str, int]:
    return cell.data, cell.corruption, cell.images


def curve_lines(store: Store) -> economy_curve.Lines:
    """The lines of the accuracy curve; only searches that were run on every corruption."""
    results = stored_results(store)
    entries = [(cell, results[cell.key]) for cell in PARTS["curve"]() if cell.key in results]
    corruptions: dict[str, set[str]] = {}
    for cell, _ in entries:
        corruptions.setdefault(line_of(cell), set()).add(cell.corruption)
    complete = [entry for entry in entries if corruptions[line_of(entry[0])] == set(CURVE)]
    lines = economy_curve.lines(complete, line_of)
    paper = lowest_loss(Store(YARDSTICK))
    if paper:
        first_measured = max(1 + first_queries(result) / cell.images for cell, result in paper)
        name = f"soda to the paper's budget (mean of {len(paper)})"
        (points,) = economy_curve.lines(paper, lambda _: name).values()
        lines[name] = {b: value for b, value in points.items() if b >= first_measured}
    return lines


def first_queries(result: Result) -> float:
    """Queries spent when the accuracy of a run was first measured."""
    return curve_points(result)[0]["queries"]


def line_of(cell: Cell) -> str:
    """The line of the curve that a cell belongs to."""
    search = next((name for name, own in SEARCHES.items() if own == cell.settings), None)
    return cell.method if search in (None, cell.method) else f"{cell.method}, {search}"


def yardstick(all_images: list[Entry], same_images: list[Entry]) -> str:
    """soda-e next to the paper's SODA with its whole budget.

    SODA has the learning rate, of those run, with the lowest final loss: `soda-tta bench run
    yardstick`. The queries of that choice are not counted.
    """
    of_all = {
        cell.corruption: result
        for cell, result in all_images
        if cell.method == "soda-e" and cell.budget == 5
    }
    of_same = {cell.corruption: result for cell, result in same_images if cell.method == "soda-e"}
    header = ["", "unadapted", "soda", "its lr", "soda-e, the same images", "soda-e, all images"]
    lines = [header]
    accuracies = []
    queries = []
    for cell, result in lowest_loss(Store(YARDSTICK)):
        corruption = cell.corruption
        if corruption not in of_all or corruption not in of_same:
            continue
        row = (result, of_same[corruption], of_all[corruption])
        values = [accuracy_before(result), *(accuracy_after(each) for each in row)]
        accuracies.append(values)
        queries.append([queries_per_image(each) for each in row])
        before, after, *economy = (f"{value:.1f}" for value in values)
        rate = f"{cell.settings.get('lr', soda.step.lr):g}"
        lines.append([corruption.replace("_", " "), before, after, rate, *economy])
    if not accuracies:
        return NOT_RUN
    before, after, *economy = (f"**{value:.1f}**" for value in np.mean(accuracies, axis=0))
    lines.append([f"**mean of {len(accuracies)}**", before, after, "", *economy])
    paper, *own = (f"{value:.2f}" for value in np.mean(queries, axis=0))
    lines.append(["queries per image", "1", paper, "", *own])
    return markdown(lines)

"""The table of one experiment, with the claims it decides and the protocol it was run with."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

import numpy as np

from cell_results import (
    Entry,
    accuracy_after,
    accuracy_before,
    accuracy_gain,
    columns_of,
    mean_of_columns,
    queries_per_image,
)
from claims import Judgement, check_one_run_per_input, judge_claim
from pages import NOT_RUN, markdown
from paper_rows import Experiment, Row
from rate_choice import lowest_loss
from soda_tta.bench import Cell, Store, make_table
from soda_tta.bench.cell import CLEAN
from soda_tta.bench.columns import protocol_line, protocol_of

SHOWN_COLUMNS = 5  # with more corruptions only their mean is shown


@dataclass(frozen=True)
class ExperimentText:
    """What a page prints about an experiment, and the judged claims for the summary."""

    text: str
    judgements: tuple[Judgement, ...] = ()


@dataclass(frozen=True)
class Measured:
    """The rows of an experiment that have enough results."""

    experiment: Experiment
    rows: dict[str, list[Entry]]
    entries: list[Entry]  # everything in the store except unfinished rows
    unfinished: dict[str, int]  # rows left out, with the number of their columns
    all_columns: list[str]
    columns: list[str]  # those that every row has

    @property
    def means(self) -> dict[str, float]:
        if not self.columns:
            return {}
        measure = accuracy_gain if self.experiment.gain else accuracy_after
        return {
            name: mean_of_columns(entries, self.columns, measure)
            for name, entries in self.rows.items()
        }

    @property
    def shown_columns(self) -> list[str]:
        return [] if len(self.columns) > SHOWN_COLUMNS else self.columns


def describe_experiment(experiment: Experiment, store: Store) -> ExperimentText:
    """The text between the markers of an experiment."""
    measured = collect_rows(experiment, store)
    if not measured.rows:
        return ExperimentText(NOT_RUN)
    means = measured.means
    judgements = tuple(
        judge_claim(claim, measured.rows, means, measured.columns, experiment.gain)
        for claim in experiment.claims
    )
    parts = [
        markdown(table_rows(measured)),
        "\n".join(str(judgement) for judgement in judgements),
        describe_protocol(measured.rows),
        describe_unfinished(measured),
    ]
    if experiment.by_corruption:
        parts.append(by_corruption(measured))
    return ExperimentText("\n\n".join(part for part in parts if part), judgements)


def collect_rows(experiment: Experiment, store: Store) -> Measured:
    """Assign cells to rows; rows with less than half of the columns are left out."""
    entries = list(store)
    if any(cell.data == "cifar10" for cell, _ in entries):  # paper scale also has CIFAR-100
        entries = [entry for entry in entries if entry[0].data == "cifar10"]
    rows = {}
    for row in experiment.rows:
        own = [entry for entry in entries if belongs(entry[0], row)]
        if own:
            rows[row.name] = lowest_loss(own) if row.lowest_loss else own
    check_one_run_per_input(rows, [row.name for row in experiment.rows if row.averaged])
    all_columns = columns_of(entry for own in rows.values() for entry in own)
    unfinished = {
        name: len(columns_of(own))
        for name, own in rows.items()
        if 2 * len(columns_of(own)) < len(all_columns)
    }
    left_out = [entry for name in unfinished for entry in rows[name]]
    rows = {name: own for name, own in rows.items() if name not in unfinished}
    entries = [entry for entry in entries if entry not in left_out]
    columns = [
        column
        for column in columns_of(entries)
        if all(column in columns_of(own) for own in rows.values())
    ]
    return Measured(experiment, rows, entries, unfinished, all_columns, columns)


def belongs(cell: Cell, row: Row) -> bool:
    """Whether a cell is part of a row."""
    settings = Cell(method=row.method, settings=row.settings).settings  # spelled as in a store
    wanted = {
        name: value if isinstance(value, tuple) else (value,) for name, value in settings.items()
    }
    return (
        cell.method == row.method
        and all(cell.settings.get(name) in values for name, values in wanted.items())
        and row.model in (None, cell.model)
        and row.images in (None, cell.images)
        and row.order in (None, cell.order)
    )


def table_rows(measured: Measured) -> list[list[str]]:
    """Header, unadapted accuracies, and one line per row."""
    experiment = measured.experiment
    paper = {row.name: row.paper for row in experiment.rows}
    with_paper = any(paper[name] is not None for name in measured.rows)
    measure = accuracy_gain if experiment.gain else accuracy_after
    sign = "+" if experiment.gain else ""
    mean_title = [f"mean of {len(measured.columns)}"] if len(measured.columns) != 1 else []
    shown = measured.shown_columns
    header = ["", *(name.replace("_", " ") for name in shown), *mean_title, "queries per image"]
    lines = [[*header, f"paper ({experiment.paper})"] if with_paper else header]
    for line in unadapted_rows(measured, bool(mean_title)):
        lines.append([*line, ""] if with_paper else line)
    means = measured.means
    for name, entries in measured.rows.items():
        accuracies = [f"{mean_of_columns(entries, [c], measure):{sign}.1f}" for c in shown]
        if mean_title:
            accuracies.append(f"{means[name]:{sign}.1f}" if name in means else "")
        queries = f"{mean(queries_per_image(result) for _, result in entries):,.0f}"
        line = [name, *accuracies, queries]
        if with_paper:
            line.append("" if paper[name] is None else f"{paper[name]:.2f}")
        lines.append(line)
    return lines


def unadapted_rows(measured: Measured, with_mean: bool) -> list[list[str]]:
    """Accuracy without adaptation, one line per number of images; none if a row shows it."""
    shows_deployed = any(name.split(",")[0] == "deployed" for name in measured.rows)
    one_model = len({cell.model for cell, _ in measured.entries}) == 1
    if shows_deployed or measured.experiment.gain or not one_model or not measured.columns:
        return []
    lines = []
    counts = sorted({cell.images for cell, _ in measured.entries})
    for count in counts:
        own = [entry for entry in measured.entries if entry[0].images == count]
        groups = [[column] for column in measured.shown_columns]
        if with_mean:
            groups.append(measured.columns)
        accuracies = [f"{mean_of_columns(own, group, accuracy_before):.1f}" for group in groups]
        name = "unadapted" if len(counts) == 1 else f"unadapted, {count:,} images"
        lines.append([name, *accuracies, "1"])
    return lines


def describe_protocol(rows: dict[str, list[Entry]]) -> str:
    """How many cells there are and how they were run: what all rows share, then the rest."""
    cells = {cell.key: cell for entries in rows.values() for cell, _ in entries}.values()
    named_elsewhere = set()
    if all(cell.corruption == CLEAN for cell in cells):
        named_elsewhere.add("severity")
    if len({cell.data for cell in cells}) > 1:
        named_elsewhere.add("data")  # the names of the columns
    facts = {}
    for name, entries in rows.items():
        own = [
            fact
            for entry in entries
            for fact in protocol_of(entry, named_elsewhere)
            if fact not in name
        ]
        quoted = f'"{name}"' if "," in name else name  # the names are joined by commas
        facts[quoted] = list(dict.fromkeys(own))
    seeds = len({cell.seed for cell in cells})
    return f"{plural(len(cells), 'cell')}, {plural(seeds, 'seed')}. {protocol_line(facts)}."


def describe_unfinished(measured: Measured) -> str:
    """The rows that are left out."""
    if not measured.unfinished:
        return ""
    total = len(measured.all_columns)
    rows = ", ".join(f"{name} ({count} of {total})" for name, count in measured.unfinished.items())
    return f"Unfinished, and left out until half of the cells exist: {rows}."


def by_corruption(measured: Measured) -> str:
    """The full table, folded; columns in the order of the rows, not of the runs."""
    rows = list(measured.rows.values())
    ranks = [
        next((rank for rank, own in enumerate(rows) if entry in own), len(rows))
        for entry in measured.entries
    ]
    entries = [measured.entries[place] for place in np.argsort(ranks, kind="stable")]
    complete = []
    for cell, result in entries:
        same_column = [
            entry
            for entry in entries
            if (entry[0].method, entry[0].settings) == (cell.method, cell.settings)
        ]
        if 2 * len(columns_of(same_column)) >= len(measured.all_columns):
            complete.append((cell, result))
    *lines, queries = make_table(complete).cells()
    table = markdown([*lines, ["queries per image", *queries[1:]]])
    return f"<details><summary>By corruption</summary>\n\n{table}\n\n</details>"


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

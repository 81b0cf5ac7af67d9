"""Renders what the stores under results/ hold into docs/reproduction.md, beside the paper's settings.

    python benchmarks/reproduction.py            # renews the page and its figures
    python benchmarks/reproduction.py --check    # fails if the page is not what the stores give

Between the markers of an experiment stand its table, the cells it is made of, and for each thing the paper says whether
it comes out here. Text outside the markers is left alone.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from pages import NOTHING, markdown, renewed
from paper_numbers import EXPERIMENTS, NO_SUCH, Claim, Experiment, Row
from rate_choice import ends_text, least_loss, schedules_text
from soda_tta.bench import Cell, Store, make_table, render
from soda_tta.bench.cell import CLEAN
from soda_tta.bench.figure_data import convergence
from soda_tta.bench.figures import draw_figure, figure_facts
from soda_tta.bench.measurement import right
from soda_tta.bench.tables import in_common, protocol_of
from starts import NETWORKS

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "reproduction.md", ROOT / "results"
FIGURES = {  # kind and caption of what is drawn beside a table, into docs/figures
    "cifar10": ("queries", "Accuracy against queries an image"),
    "points": ("points", "Accuracy by the number of images"),
    "selection": ("heat", "Accuracy by tau and rho, a map an alpha and a row a corruption"),
    "convergence": ("convergence", "Accuracy by epoch"),
}
ALIKE = 0.12  # correlation of the differences between two runs at the same image, over the 19 corruptions
KINDS = {  # the words of a verdict, and what they come to
    "does not come out": "no",
    "differs": "no",
    "comes out": "yes",
    "no difference": "yes",
    "undecided": "undecided",
}
SAME = 5.0  # points: half of what the paper's SODA gains; what may differ by more is not said to be alike
DIFFERING = 0.35  # of the answers of two runs differ, at most: 0.26 to 0.36 of soda, soda-fo and deployed on noise

Entry = tuple[Cell, dict[str, Any]]


def belongs(cell: Cell, row: Row) -> bool:
    wanted = {
        name: value if isinstance(value, tuple) else (value,)
        for name, value in row.settings.items()
    }
    return (
        cell.method == row.method
        and all(cell.settings.get(name) in values for name, values in wanted.items())
        and row.model in (None, cell.model)
        and row.images in (None, cell.images)
        and row.order in (None, cell.order)
    )


def place(cell: Cell) -> str:
    """What a cell's column is called."""
    return cell.data if cell.corruption == CLEAN else cell.corruption


def experiment_text(experiment: Experiment, store: Store) -> str:
    entries = list(store)
    if any(
        cell.data == "cifar10" for cell, _ in entries
    ):  # ablations in the paper's size have CIFAR-100, too
        entries = [(cell, result) for cell, result in entries if cell.data == "cifar10"]
    if experiment.gain:
        entries = [
            (cell, {**result, "after": result["after"] - result["before"]})
            for cell, result in entries
        ]
    rows = {
        row.name: [entry for entry in entries if belongs(entry[0], row)] for row in experiment.rows
    }
    rows |= {row.name: least_loss(rows[row.name]) for row in experiment.rows if row.least_loss}
    rows = {name: found for name, found in rows.items() if found}
    refuse_mixtures(rows, [row.name for row in experiment.rows if row.averaged])
    if not rows:
        return NOTHING
    everywhere = places([entry for found in rows.values() for entry in found])
    reached = {name: len(places(found)) for name, found in rows.items()}
    waiting = {name: found for name, found in rows.items() if 2 * reached[name] < len(everywhere)}
    rows = {name: found for name, found in rows.items() if name not in waiting}
    entries = [entry for entry in entries if not any(entry in found for found in waiting.values())]
    shared = [
        p
        for p in places(entries)
        if all(p in {place(cell) for cell, _ in found} for found in rows.values())
    ]
    means = {name: mean_over(found, shared) for name, found in rows.items()} if shared else {}
    paper = {row.name: row.paper for row in experiment.rows}
    few = [] if len(shared) > 5 else shared
    summary = [f"mean of {len(shared)}"] if len(shared) != 1 else []
    head = ["", *(name.replace("_", " ") for name in few), *summary, "queries an image"]
    with_paper = any(paper[name] is not None for name in rows)
    lines = [[*head, f"paper ({experiment.paper})"] if with_paper else head]
    counts = sorted({cell.images for cell, _ in entries})
    shown = any(name.split(",")[0] == "deployed" for name in rows)
    if (
        not shown
        and not experiment.gain
        and len({cell.model for cell, _ in entries}) == 1
        and shared
    ):
        for count in counts:
            of = [entry for entry in entries if entry[0].images == count]
            start = [number(before(of, [name])) for name in few]
            name = "before" if len(counts) == 1 else f"before, {count:,} images"
            lines.append([name, *start, *(number(before(of, shared)) for _ in summary), "1"])
            lines[-1] += [""] if with_paper else []
    for name, found in rows.items():
        own = [*(mean_over(found, [p]) for p in few), *(means.get(name) for _ in summary)]
        own = [
            f"{value:+.1f}" if experiment.gain and value is not None else number(value)
            for value in own
        ]
        paid = f"{mean(result['queries_per_image'] for _, result in found):,.0f}"
        lines.append([name, *own, paid, *([number(paper[name], 2)] if with_paper else [])])
    told = [verdict(claim, rows, means, shared, experiment.gain) for claim in experiment.claims]
    parts = [markdown(lines), "\n".join(told), protocol(rows)]
    if waiting:
        left_out = ", ".join(f"{name} ({reached[name]} of {len(everywhere)})" for name in waiting)
        parts.append(f"Under way, and left out until half is there: {left_out}.")
    if experiment.full:
        order = {
            name: number for number, name in enumerate(rows)
        }  # not that in which cells happened to be run
        rank = [
            next((order[name] for name, found in rows.items() if entry in found), len(order))
            for entry in entries
        ]
        entries = [entries[number] for number in np.argsort(rank, kind="stable")]
        entries = [
            entry
            for entry in entries
            if 2 * len(places(alike(entry[0], entries))) >= len(everywhere)
        ]
        table = render(make_table(entries)).split("\n\nProtocol")[0]
        parts.append(f"<details><summary>By corruption</summary>\n\n{table}\n\n</details>")
    return "\n\n".join(part for part in parts if part)


def summary_text(found: dict[str, str]) -> str:
    """Of what the paper says: how much comes out, and all that does not."""
    told: dict[str, list[list[str]]] = {"yes": [], "no": [], "undecided": []}
    for experiment in EXPERIMENTS:
        of_the_paper = (
            []
            if experiment.paper == NO_SUCH
            else [claim for claim in experiment.claims if not claim.ours]
        )
        for claim in of_the_paper:
            start = f"- {claim.sentence}: "
            seen = next(
                (line for line in found[experiment.grid].splitlines() if line.startswith(start)), ""
            )
            verdict, settings = seen.removeprefix(start).rpartition(" (")[::2]
            kind = next((kind for words, kind in KINDS.items() if words in verdict), None)
            if kind:
                row = [
                    f"[{experiment.title}](#{anchor(experiment.title)})",
                    claim.sentence,
                    settings.rstrip(".)"),
                    kind,
                ]
                told[kind].append(row)
    if not any(told.values()):
        return NOTHING
    counts = {kind: len(rows) for kind, rows in told.items()}
    head = ["experiment", "what the paper says", "here", "comes out?"]
    return "\n\n".join(
        [
            f"Of {sum(counts.values())} things the paper says of these experiments {counts['yes']} come out, "
            f"{counts['no']} do not, and {counts['undecided']} are undecided:",
            markdown([head, *told["no"], *told["undecided"]]),
        ]
    )


def anchor(title: str) -> str:
    """What GitHub calls a heading in a link.

    >>> anchor("CIFAR-10-C, every method (the main table)")
    'cifar-10-c-every-method-the-main-table'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def places(entries: list[Entry]) -> list[str]:
    return list(dict.fromkeys(place(cell) for cell, _ in entries))


def alike(cell: Cell, entries: list[Entry]) -> list[Entry]:
    """The entries of the same column."""
    return [
        entry
        for entry in entries
        if (entry[0].method, entry[0].settings) == (cell.method, cell.settings)
    ]


def mean_over(found: list[Entry], where: list[str]) -> float:
    return mean(mean(result["after"] for cell, result in found if place(cell) == p) for p in where)


def before(entries: list[Entry], where: list[str]) -> float:
    """Of the model as it is."""
    return mean(
        mean(result["before"] for cell, result in entries if place(cell) == p) for p in where
    )


def number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def verdict(
    claim: Claim,
    rows: dict[str, list[Entry]],
    means: dict[str, float],
    where: list[str],
    gain: bool,
) -> str:
    if claim.first not in means or claim.second not in means:
        return f"- {claim.sentence}: not measured yet."
    first, second = means[claim.first], means[claim.second]
    sign = "+" if gain else ""
    settings = f"{claim.first} {first:{sign}.1f}, {claim.second} {second:{sign}.1f}"
    both = [
        [entry for entry in rows[name] if place(entry[0]) in where]
        for name in (claim.first, claim.second)
    ]
    if len(both[0]) != len(
        both[1]
    ):  # of a grid under way: they differ in more than the claim is about
        return f"- {claim.sentence}: not measured yet."
    difference, least = (None if gain else paired(*both)) or (
        first - second,
        unpaired_margin(*both),
    )
    close = abs(difference) < least
    if claim.alike:
        possible = abs(difference) + least  # what 19 of 20 such measurements would not rule out
        seen = (
            "differs"
            if not close
            else f"no difference above {possible:.1f} points"
            if possible <= SAME
            else ""
        )
        if seen:
            return f"- {claim.sentence}: **{seen}** ({settings})."
        return f"- {claim.sentence}: **undecided**, a difference of {possible:.1f} points is possible ({settings})."
    if close:
        return f"- {claim.sentence}: **undecided**, the difference is below {least:.1f} points ({settings})."
    return f"- {claim.sentence}: **{'comes out' if difference > 0 else 'does not come out'}** ({settings})."


def unpaired_margin(first: list[Entry], second: list[Entry]) -> float:
    """Two standard errors of the difference between two runs, in points, if they differ as runs do.

    Cells show the same images, corrupted in another way, and are not as good as new images.
    """
    alone = []
    for found in (first, second):
        images, cells = min(cell.images for cell, _ in found), len(found)
        alone.append(images * cells / (1 + (cells - 1) * ALIKE))
    return 200 * math.sqrt(DIFFERING / min(alone))


def paired(first: list[Entry], second: list[Entry]) -> tuple[float, float] | None:
    """The difference and two standard errors of it, image by image, where both rows kept what they answered.

    An image counts once, however many corruptions and seeds show it: its differences are averaged. Two more images, one
    gained and one lost, keep a handful of differing answers from looking like certainty.
    """
    one, two = answered_rightly(first), answered_rightly(second)
    if one is None or two is None or one.keys() != two.keys():
        return None
    found: dict[tuple[Any, ...], list[Any]] = {}  # by set of images
    for shown in one:
        found.setdefault((shown.data, shown.images), []).append(one[shown] - two[shown])
    difference = variance = 0.0
    for cells in found.values():
        of_image, share = np.mean(cells, axis=0), len(cells) / len(one)
        difference += share * float(of_image.mean())
        variance += share**2 * float(np.var([*of_image, 1, -1])) / len(of_image)
    return 100 * difference, 200 * math.sqrt(variance)


class Shown(NamedTuple):
    """What a run was shown: two runs of the same images can be compared one by one."""

    data: str
    model: str
    corruption: str
    severity: int
    images: int
    order: str
    seed: int


def shown_to(cell: Cell) -> Shown:
    return Shown(*(getattr(cell, name) for name in Shown._fields))


def answered_rightly(entries: list[Entry]) -> dict[Shown, Any] | None:
    """For each image how often it was answered rightly, by what was shown; None where a run has not kept it."""
    found: dict[Shown, list[Any]] = {}
    for cell, result in entries:
        kept = right(result, cell.images)
        if kept is None:
            return None
        found.setdefault(shown_to(cell), []).append(kept)
    return {shown: np.mean(several, axis=0) for shown, several in found.items()}


def refuse_mixtures(rows: dict[str, list[Entry]], averaged: Sequence[str]) -> None:
    """Two runs on the same images in one row are two experiments; their mean would be of neither."""
    for name, entries in rows.items():
        if name not in averaged and len({shown_to(cell) for cell, _ in entries}) < len(entries):
            titles = "\n  ".join(cell.title for cell, _ in entries)
            raise SystemExit(f"the row {name!r} mixes experiments; drop some of:\n  {titles}")


def protocol(rows: dict[str, list[Entry]]) -> str:
    """How many cells, and what they were run with: what the rows share, then what some have beside it."""
    entries = {cell.key: cell for found in rows.values() for cell, _ in found}.values()
    told = {"severity"} if all(cell.corruption == CLEAN for cell in entries) else set()
    told |= {"data"} if len({cell.data for cell in entries}) > 1 else set()  # the names of columns
    facts: dict[str, list[str]] = {}
    for name, found in rows.items():
        own = [fact for entry in found for fact in protocol_of(entry, told) if fact not in name]
        facts[name] = list(dict.fromkeys(own))
    seeds = len({cell.seed for cell in entries})
    return f"{plural(len(entries), 'cell')}, {plural(seeds, 'seed')}. {in_common(facts)}."


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def curves_text(store: Store) -> str:
    """Where each curve ends, and how soon it is half-way there."""
    lines = [["", "before", "at the end", "best on the way", "half of the gain after", "epochs"]]
    for name, points in convergence(store)["series"].items():
        start, end = points[0]["accuracy"], points[-1]["accuracy"]
        half = (
            next((p["epoch"] for p in points if p["accuracy"] >= (start + end) / 2), 0)
            if end > start
            else 0
        )
        told = f"epoch {half}" if end > start else "no gain"
        lines.append(
            [name, *(number(v) for v in (start, end, max(p["accuracy"] for p in points))), told]
        )
        lines[-1].append(str(points[-1]["epoch"]))
    return markdown(lines)


def gradient_text(path: Path) -> str:
    if not path.exists():
        return NOTHING
    facts = json.loads(path.read_text())
    head = [
        "corruption",
        "adaptor",
        "objective",
        "gradient",
        "error, q = 5",
        "error / gradient",
        "the same, q = 50",
    ]
    lines = [[*head, "cosine of the gradient", "of an estimate, q = 5", "q = 50"]]
    for row in facts["rows"]:
        told = [
            row["corruption"].replace("_", " "),
            f"{row['point']}, {row['accuracy']:.0f} %",
            row["objective"],
        ]
        told += [f"{row['norm']:.3g}", f"{row['error_q5']:.3g}", f"{row['relative_q5']:.1f}"]
        told += [
            f"{row['relative_q50']:.1f}",
            *(f"{row[name]:.3f}" for name in ("cosine", "cosine_q5", "cosine_q50")),
        ]
        lines.append(told)
    return markdown(lines)


def random_walk_text(path: Path) -> str:
    if not path.exists():
        return NOTHING
    head = [
        "step (normalised pixels)",
        "steps",
        "pixels moved (of 255)",
        "mean of 19",
        "five blurs",
        "the others",
    ]
    lines = [head]
    for row in json.loads(path.read_text())["rows"]:
        found = row["accuracy"]
        parts = [
            [v for c, v in found.items() if ("blur" in c) is blurred] for blurred in (True, False)
        ]
        told = [f"{row['lr']:g}", str(row["steps"]), f"{row['moved']:.1f}"]
        lines.append([*told, *(number(mean(each)) for each in (found.values(), *parts))])
    return markdown(lines)


def starts_text(path: Path, shown: Sequence[str]) -> str:
    """Each network before it has learned anything, in the mean and at some places; seeds in one row."""
    if not path.exists():
        return NOTHING
    by_network: dict[str, list[dict[str, Any]]] = {}
    for row in (everything := json.loads(path.read_text())["rows"]):
        by_network.setdefault(
            NETWORKS.get(row["network"], "none: the images as they are"), []
        ).append(row)
    places, names = len(everything[0]["accuracy"]), [place.replace("_", " ") for place in shown]
    lines = [["network of", "pixels moved (of 255)", f"mean of {places}", *names, "seeds"]]
    for network, rows in by_network.items():
        means = [mean(row["accuracy"].values()) for row in rows]
        told = (
            number(means[0])
            if len(rows) == 1
            else f"{mean(means):.1f} ({min(means):.1f} to {max(means):.1f})"
        )
        some = [number(mean(row["accuracy"][place] for row in rows)) for place in shown]
        lines.append(
            [network, number(mean(row["moved"] for row in rows)), told, *some, str(len(rows))]
        )
    return markdown(lines)


def statistics_text(path: Path) -> str:
    if not path.exists():
        return NOTHING
    rows = json.loads(path.read_text())["rows"]
    lines = [["statistics replaced", *(name.replace("_", " ") for name in rows[0]["accuracy"])]]
    return markdown(
        [*lines, *([f"{row['share']:.0%}", *map(number, row["accuracy"].values())] for row in rows)]
    )


def reliable_text(path: Path) -> str:
    if not path.exists():
        return NOTHING
    rows = json.loads(path.read_text())["rows"]
    where = [name.replace("_", " ") for name in rows[0]["by"]]
    lines = [
        [
            "tau",
            "rho",
            *(f"{name}: {what}" for name in where for what in ("reliable", "of them right")),
        ]
    ]
    for row in rows:
        told = [[str(found["reliable"]), f"{found['right']:.0f} %"] for found in row["by"].values()]
        lines.append(
            [f"{row['tau']:g}", f"{row['rho']:g}", *(text for each in told for text in each)]
        )
    return markdown(lines)


def texts(results: Path = RESULTS) -> dict[str, str]:
    """The text of every marker."""
    found = {
        "gradient-error": gradient_text(results / "gradient_error.json"),
        "random-walk": random_walk_text(results / "random_walk.json"),
        "starts": starts_text(results / "starts.json", ("gaussian_noise", "contrast")),
        "starts-office-home": starts_text(
            results / "starts_office_home.json", ("pacs/sketch", "pacs/cartoon")
        ),
        "running-statistics": statistics_text(results / "running_statistics.json"),
        "reliable-labels": reliable_text(results / "reliable_labels.json"),
        "rate-ends": ends_text(Store(results / "rates")),
        "rate-choice": schedules_text(Store(results / "rates")),
        "rate-kept-ends": ends_text(Store(results / "rates-kept")),
        "rate-cifar100-ends": ends_text(Store(results / "rates-cifar100"), "cifar100"),
    }
    for experiment in EXPERIMENTS:
        folder = results / experiment.grid
        there = (folder / "results.jsonl").exists()
        text = experiment_text(experiment, store := Store(folder)) if there else NOTHING
        if there and experiment.grid.startswith("convergence") and text != NOTHING:
            text = f"{text}\n\n{curves_text(store)}"
        if experiment.grid in FIGURES and text != NOTHING:
            text = f"{text}\n\n![{FIGURES[experiment.grid][1]}](figures/{experiment.grid}.svg)"
        found[experiment.grid] = text
    return {"summary": summary_text(found), **found}


def rendered(page: str, results: Path = RESULTS) -> str:
    """The page with every marker's text renewed."""
    return renewed(page, texts(results))


def draw_figures() -> None:
    for grid, (kind, _) in FIGURES.items():
        if len(store := Store(RESULTS / grid)):
            draw_figure(figure_facts(store, kind), PAGE.parent / "figures" / f"{grid}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is out of date"
    )
    options = parser.parse_args()
    page = PAGE.read_text()
    fresh = rendered(page)
    if options.check:
        sys.exit(
            0
            if fresh == page
            else "docs/reproduction.md is out of date: python benchmarks/reproduction.py"
        )
    PAGE.write_text(fresh)
    draw_figures()


if __name__ == "__main__":
    main()

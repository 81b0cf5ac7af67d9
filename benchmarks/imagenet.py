"""ImageNet-C: soda-e in front of three deployed models, and what else one can do with a model.

    python benchmarks/imagenet.py run [PART ...]   # resumes; all parts: hours of one core
    python benchmarks/imagenet.py page             # update the tables of docs/research/imagenet.md

Images of `imagenet-val-2000`, evenly spaced over the classes, severity 5, one seed. Nothing of
soda-e was chosen on these images or these models' answers to them. Labels only measure.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cell_results import Result, accuracy_after, accuracy_before, adaptor_text, queries_per_image
from economy import print_cell
from economy_parts import SIX
from pages import NOT_RUN, markdown, replace_tables
from soda_tta.bench import Cell, Store, run_grid
from soda_tta.bench.peer_grids import EXTRA, STANDARD

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "research" / "imagenet.md"
RESULTS = ROOT / "results" / "imagenet-c"
EVERY = (*STANDARD, *EXTRA)
WHITE_BOX = ("bn", "tent", "ma-so")
STATED = {"prior": "balanced", "views": "2"}


def cells(
    model: str,
    method: str,
    images: int,
    corruptions: Sequence[str] = EVERY,
    budget: float | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Cell]:
    """One cell per corruption."""
    return [
        Cell(
            method=method,
            data="imagenet-val-2000",
            model=f"imagenet_{model}",
            corruption=corruption,
            images=images,
            budget=budget,
            settings=dict(settings or {}),
        )
        for corruption in corruptions
    ]


MOBILENET, LITE0, RESNET = "mobilenet_v2_int8", "efficientnet_lite0", "resnet50"
STATED_BUDGET = 12  # with two views: as much search as at a budget of 10 with one
COLUMNS: dict[str, dict[str, list[Cell]]] = {
    "mobilenet": {"soda-e, budget 10": cells(MOBILENET, "soda-e", 1000, EVERY, 10)},
    "clean": {
        "soda-e, budget 10": [
            *cells(MOBILENET, "soda-e", 1000, ["clean"], 10),
            *cells(LITE0, "soda-e", 1000, ["clean"], 10),
        ]
    },
    "budgets": {
        "budget 5": cells(MOBILENET, "soda-e", 1000, SIX, 5),
        "budget 10": cells(MOBILENET, "soda-e", 1000, SIX, 10),
        "budget 30": cells(MOBILENET, "soda-e", 1000, SIX, 30),
        "budget 12, stated prior and 2 views": cells(
            MOBILENET, "soda-e", 1000, SIX, STATED_BUDGET, STATED
        ),
        "10 views": cells(MOBILENET, "tta", 1000, SIX, settings={"views": 10}),
    },
    "lite0": {"soda-e, budget 10": cells(LITE0, "soda-e", 1000, EVERY, 10)},
    "resnet50": {
        "soda-e, budget 10": cells(RESNET, "soda-e", 400, STANDARD, 10),
        **{method: cells(RESNET, method, 400, STANDARD) for method in WHITE_BOX},
    },
}


def finished(part: str) -> dict[str, dict[str, Result]]:
    """The results of a part: by column, then by corruption."""
    store = Store(RESULTS)
    return {
        title: {cell.corruption: store[cell] for cell in column if cell in store}
        for title, column in COLUMNS[part].items()
    }


def table(part: str) -> str:
    """Accuracies by corruption, and their means over what all columns have."""
    columns = {title: found for title, found in finished(part).items() if found}
    if not columns:
        return NOT_RUN
    first = next(iter(columns.values()))
    rows = [["", "unadapted", *columns]]
    for corruption, result in first.items():
        shown = [shown_accuracy(found.get(corruption)) for found in columns.values()]
        rows.append([name_of(corruption), f"{accuracy_before(result):.1f}", *shown])
    for title, names in (("standard", STANDARD), ("all", EVERY)):
        common = [name for name in names if all(name in found for found in columns.values())]
        if not common or (title == "all" and set(common) <= set(STANDARD)):
            continue
        before = np.mean([accuracy_before(first[name]) for name in common])
        means = [
            np.mean([accuracy_after(found[name]) for name in common]) for found in columns.values()
        ]
        of = f"mean of {len(common)}" + (" standard ones" if title == "standard" else "")
        rows.append([f"**{of}**", f"{before:.1f}", *(f"**{value:.1f}**" for value in means)])
    queries = [
        np.mean([queries_per_image(result) for result in found.values()])
        for found in columns.values()
    ]
    rows.append(["queries per image", "1", *(f"{value:.1f}" for value in queries)])
    return markdown(rows)


def shown_accuracy(result: Result | None) -> str:
    return "-" if result is None else f"{accuracy_after(result):.1f}"


def name_of(corruption: str) -> str:
    return corruption.replace("_", " ") + ("*" if corruption in EXTRA else "")


def what_it_does(part: str) -> str:
    """What the adaptors of a part do, in words."""
    found = next(iter(finished(part).values()))
    rows = [["", "what soda-e does"]]
    rows += [[name_of(name), adaptor_text(result)] for name, result in found.items()]
    return markdown(rows) if found else NOT_RUN


def clean_table() -> str:
    """What happens to images without any shift."""
    store = Store(RESULTS)
    rows = [["model", "unadapted", "soda-e", "queries per image"]]
    for cell in COLUMNS["clean"]["soda-e, budget 10"]:
        if cell in store:
            result = store[cell]
            before, after = accuracy_before(result), accuracy_after(result)
            figures = (f"{before:.1f}", f"{after:.1f}", f"{queries_per_image(result):.1f}")
            rows.append([cell.model, *figures])
    return markdown(rows) if len(rows) > 1 else NOT_RUN


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the cells")
    run.add_argument("parts", nargs="*", metavar="PART", help=", ".join(COLUMNS))
    commands.add_parser("page", help="update the tables")
    options = parser.parse_args()
    if options.command == "run":
        for part in options.parts or COLUMNS:
            every = [cell for column in COLUMNS[part].values() for cell in column]
            run_grid(every, Store(RESULTS), jobs=1, report=print_cell)
        return
    tables = {f"imagenet-{part}": table(part) for part in COLUMNS if part != "clean"}
    tables["imagenet-does"] = what_it_does("mobilenet")
    tables["imagenet-clean"] = clean_table()
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))


if __name__ == "__main__":
    main()

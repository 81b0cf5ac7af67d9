"""How strong is soda-e at its defaults? Every corruption of CIFAR-C at stated budgets.

    python benchmarks/bars.py run [PART ...]   # resumes; all parts: two hours of one core
    python benchmarks/bars.py page             # update the tables of docs/research/soda-e.md

All 10,000 images, severity 5, one seed. The recipes (benchmarks/recipes.py), the number of images
and everything else were chosen on other images, and on the six corruptions with a star in front of
the CIFAR-10 ResNet-20. Labels only measure.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bank_versions import DEVELOPED_ON
from cell_results import Result, accuracy_after, accuracy_before, queries_per_image
from economy import RESULTS as BEFORE
from economy import print_cell
from economy_parts import FIVE, cifar
from pages import replace_tables
from soda_tta.bench import Cell, Store, run_grid

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "research" / "soda-e.md"
RESULTS = ROOT / "results"
STATED = {"prior": "balanced", "views": "2"}
CLEAN = ["clean"]
PARTS: dict[str, list[Cell]] = {
    "plain": cifar("cifar10", "soda-e", budget=5),
    "stated": cifar("cifar10", "soda-e", budget=6, settings=STATED),
    "three": cifar("cifar10", "soda-e", budget=3),
    "hundred": cifar("cifar100", "soda-e", budget=5),
    "hundred-stated": cifar("cifar100", "soda-e", budget=6, settings=STATED),
    "white-box": cifar("cifar10", "soda-e", 1000, FIVE, budget=15),
    "resnet32": cifar("cifar10", "soda-e", budget=5, model="cifar10_resnet32"),
    "clean": [
        *cifar("cifar10", "soda-e", budget=5, corruptions=CLEAN),
        *cifar("cifar100", "soda-e", budget=5, corruptions=CLEAN),
        *cifar("cifar10", "soda-e", budget=5, corruptions=CLEAN, model="cifar10_resnet32"),
    ],
}
COLUMNS = {
    "plain": "budget 5",
    "stated": "budget 6, balanced prior and mirror image",
    "three": "budget 3",
    "resnet32": "ResNet-32, budget 5",
}
HUNDRED = {"hundred": "budget 5", "hundred-stated": "budget 6, balanced prior and mirror image"}
RIVALS = ("bn", "tent", "ma-so")  # white-box methods

Column = Mapping[str, Result]  # by corruption


def column(part: str) -> dict[str, Result]:
    """The finished cells of a part."""
    store = Store(RESULTS / f"bars-{part}")
    return {cell.corruption: store[cell] for cell in PARTS[part] if cell in store}


def table(columns: Mapping[str, Column]) -> str:
    """Accuracies by corruption, their means and the queries; columns that are whole."""
    whole = {name: cells for name, cells in columns.items() if len(cells) == len(PARTS["plain"])}
    if not whole:
        return "(not run yet)"
    lines = ["| | unadapted | " + " | ".join(whole) + " |", "|---|---|" + "---|" * len(whole)]
    first = next(iter(whole.values()))
    for corruption, result in first.items():
        shown = " | ".join(f"{accuracy_after(each[corruption]):.1f}" for each in whole.values())
        mark = "*" if corruption in DEVELOPED_ON else ""
        name = corruption.replace("_", " ")
        lines.append(f"| {name}{mark} | {accuracy_before(result):.1f} | {shown} |")
    held_out = [name for name in first if name not in DEVELOPED_ON]
    for title, names in ((f"mean of {len(first)}", list(first)), ("mean without stars", held_out)):
        before = np.mean([accuracy_before(first[name]) for name in names])
        means = [np.mean([accuracy_after(each[name]) for name in names]) for each in whole.values()]
        shown = " | ".join(f"**{value:.1f}**" for value in means)
        lines.append(f"| **{title}** | {before:.1f} | {shown} |")
    queries = [
        np.mean([queries_per_image(each) for each in cells.values()]) for cells in whole.values()
    ]
    lines.append(f"| queries per image | 1 | {' | '.join(f'{value:.2f}' for value in queries)} |")
    return "\n".join(lines)


def white_box_table() -> str:
    """The five corruptions on which white-box methods were run, 1,000 images each."""
    rows: dict[str, dict[str, float]] = {method: {} for method in RIVALS}
    for cell, result in Store(BEFORE):
        few = cell.data == "cifar10" and cell.images == 1000 and cell.corruption in FIVE
        if few and cell.method in RIVALS and cell.model == "cifar10_resnet20":
            rows[cell.method][cell.corruption] = accuracy_after(result)
    ours = column("white-box")
    rows["soda-e, budget 15"] = {name: accuracy_after(result) for name, result in ours.items()}
    titles = " | ".join(name.replace("_", " ") for name in FIVE)
    lines = [f"| | {titles} | mean |", "|---|" + "---|" * (len(FIVE) + 1)]
    for method, accuracies in rows.items():
        if set(accuracies) != set(FIVE):
            continue
        shown = " | ".join(f"{accuracies[name]:.1f}" for name in FIVE)
        lines.append(f"| {method} | {shown} | **{np.mean(list(accuracies.values())):.1f}** |")
    return "\n".join(lines)


def clean_table() -> str:
    """What happens to images without any shift."""
    lines = ["| data | model | unadapted | soda-e | queries per image |", "|---|---|---|---|---|"]
    for cell, result in Store(RESULTS / "bars-clean"):
        lines.append(
            f"| {cell.data} | {cell.model} | {accuracy_before(result):.1f} | "
            f"{accuracy_after(result):.1f} | {queries_per_image(result):.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the cells")
    run.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    commands.add_parser("page", help="update the tables")
    options = parser.parse_args()
    if options.command == "run":
        for part in options.parts or PARTS:
            run_grid(PARTS[part], Store(RESULTS / f"bars-{part}"), jobs=1, report=print_cell)
        return
    tables = {
        "bars": table({title: column(part) for part, title in COLUMNS.items()}),
        "bars-hundred": table({title: column(part) for part, title in HUNDRED.items()}),
        "bars-white-box": white_box_table(),
        "bars-clean": clean_table(),
    }
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))


if __name__ == "__main__":
    main()

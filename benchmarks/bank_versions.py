"""What the larger restoration bank of version 0.2 changes, and what races would: the same cells.

    python benchmarks/bank_versions.py run [PART]   # resumes; PART: present, races
    python benchmarks/bank_versions.py page         # update the table of docs/research/soda-e.md

The new parts and the number of heats were chosen on development data only: generic degradations of
other CIFAR-10 images with a ResNet-32, and the six corruptions that soda-e was developed on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from cell_results import accuracy_after, accuracy_before, queries_per_image
from economy import RESULTS as BEFORE
from economy import print_cell
from economy_parts import cifar
from pages import replace_tables
from soda_tta.bench import Store, run_grid

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "research" / "soda-e.md"
RESULTS = ROOT / "results"
DEVELOPED_ON = (
    "shot_noise",
    "motion_blur",
    "frost",
    "contrast",
    "jpeg_compression",
    "brightness",
)
PARTS = {"present": {}, "races": {"heats": 3, "batch": 192}}


def cells(part: str) -> list:
    """All corruptions of CIFAR-10-C with a budget of five."""
    return cifar("cifar10", "soda-e", budget=5, settings=PARTS[part])


def of_budget_five(folder: Path) -> dict[str, dict]:
    """The results of soda-e with all images and a budget of five, by corruption."""
    chosen = {}
    for cell, result in Store(folder):
        plain = cell.data == "cifar10" and cell.method == "soda-e" and cell.images == 10_000
        if plain and cell.budget == 5 and cell.model == "cifar10_resnet20":
            chosen[cell.corruption] = result
    return chosen


def table() -> str:
    """Accuracies by corruption, and the means."""
    columns = {
        "bank of 0.1": of_budget_five(BEFORE),
        "bank of 25 parts": of_budget_five(RESULTS / "economy-present"),
        "bank of 25 parts, races of three heats": of_budget_five(RESULTS / "economy-races"),
    }
    present = columns["bank of 25 parts"]
    lines = [f"| | unadapted | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
    for corruption, result in present.items():
        accuracies = [accuracy_after(each[corruption]) for each in columns.values()]
        shown = " | ".join(f"{value:.1f}" for value in accuracies)
        mark = "*" if corruption in DEVELOPED_ON else ""
        name = corruption.replace("_", " ")
        lines.append(f"| {name}{mark} | {accuracy_before(result):.1f} | {shown} |")
    unadapted = np.mean([accuracy_before(result) for result in present.values()])
    means = [np.mean([accuracy_after(each[name]) for name in present]) for each in columns.values()]
    shown = " | ".join(f"**{value:.1f}**" for value in means)
    lines.append(f"| **mean of {len(present)}** | {unadapted:.1f} | {shown} |")
    queries = [
        np.mean([queries_per_image(each[name]) for name in present]) for each in columns.values()
    ]
    lines.append(f"| queries per image | 1 | {' | '.join(f'{value:.2f}' for value in queries)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the cells")
    run.add_argument("part", nargs="?", choices=PARTS, default="present")
    commands.add_parser("page", help="update the table")
    options = parser.parse_args()
    if options.command == "run":
        store = Store(RESULTS / f"economy-{options.part}")
        run_grid(cells(options.part), store, jobs=1, report=print_cell)
        return
    PAGE.write_text(replace_tables(PAGE.read_text(), {"versions": table()}))


if __name__ == "__main__":
    main()

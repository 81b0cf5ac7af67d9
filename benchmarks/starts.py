"""What the paper's networks do to the images before they have learned anything.

    python benchmarks/starts.py [--out results/starts.json]
    python benchmarks/starts.py --office-home [--out results/starts_office_home.json]

They begin from random weights, so the first thing a run does is to distort every image; learning must first make that
good. One query an image and network. Needs the real CIFAR-10 images and ResNet-20, or PACS and its model
(SODA_TTA_DATA); labels are used to measure only. The tables are part of docs/reproduction.md.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.bench.cell import Cell
from soda_tta.bench.grids import find_grid
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.engine.run import versions
from soda_tta.methods import all_methods

NETWORKS = {
    "soda": "soda, soda-fo, soda-o, da-pl, da-zoo-input",
    "soda-r": "soda-r",
    "da-direct": "da-direct",
    "soda-office-home": "soda-office-home",
    "soda-r-office-home": "soda-r-office-home",
}
SEEDS = range(3)
Networks = dict[str, Callable[[int], Adaptor]]  # by method, each from a seed


def main_table() -> tuple[dict[str, Cell], Networks]:
    names = ("soda", "soda-r", "da-direct")
    cells = {
        corruption: Cell(method="deployed", corruption=corruption) for corruption in CORRUPTIONS
    }
    return cells, {name: all_methods()[name].adaptor.build for name in names}


def office_home() -> tuple[dict[str, Cell], Networks]:
    cells = find_grid("office-home")
    settings = {cell.method: cell.settings for cell in cells if cell.method != "deployed"}
    networks = {
        name: all_methods()[name].but(**own).network().build for name, own in settings.items()
    }
    return {cell.data: cell for cell in cells if cell.method == "deployed"}, networks


def measure(cells: dict[str, Cell], networks: Networks) -> list[dict]:
    rows = [
        {"network": name, "seed": seed, "moved": [], "accuracy": {}}
        for name in networks
        for seed in SEEDS
    ]
    before = {}
    for place, cell in cells.items():
        data, box = cell_images(cell), cell.box()
        images = data[:]
        before[place] = accuracy(box(images), data.labels)
        for row in rows:
            changed = networks[row["network"]](row["seed"])(images)
            row["moved"].append(float(np.sqrt(np.mean((changed - images) ** 2)) * 255))
            row["accuracy"][place] = accuracy(box(changed), data.labels)
        print(place, before[place], *(f"{row['accuracy'][place]:.1f}" for row in rows), flush=True)
    rows = [{**row, "moved": round(float(np.mean(row["moved"])), 2)} for row in rows]
    return [{"network": None, "seed": 0, "moved": 0.0, "accuracy": before}, *rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--office-home",
        action="store_true",
        help="on PACS, the networks of the Office-Home protocol",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cells, networks = office_home() if options.office_home else main_table()
    one = next(iter(cells.values()))
    card = {
        "data": ", ".join(dict.fromkeys(cell.data for cell in cells.values())),
        "model": one.model,
    }
    card |= {"severity": one.severity, "images": one.images, "versions": versions()}
    out = options.out or Path(
        "results", "starts_office_home.json" if options.office_home else "starts.json"
    )
    out.write_text(json.dumps({"card": card, "rows": measure(cells, networks)}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What the paper's networks do to the images before they are trained.

    python benchmarks/starts.py [--out results/starts.json]
    python benchmarks/starts.py --office-home [--out results/starts_office_home.json]

The networks start from random weights, so a run first distorts every image, and training has to
undo that. Costs one query per image and network. Needs the real CIFAR-10 images and ResNet-20, or
PACS and its model (SODA_TTA_DATA). Labels are used only to measure. The tables are part of
docs/research/reproduction.md.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

import numpy as np

from pages import NOT_RUN, markdown
from soda_tta.adaptors import Adaptor
from soda_tta.bench.cell import Cell
from soda_tta.bench.grids import find_grid
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.engine.card import versions
from soda_tta.methods import all_methods

METHODS_OF_NETWORK = {  # several methods start from the same network
    None: "none: the unadapted images",
    "soda": "soda, soda-fo, soda-o, da-pl, da-zoo-input",
}
SEEDS = range(3)
Networks = dict[str, Callable[[int], Adaptor]]  # by method; each is built from a seed


def main_table() -> tuple[dict[str, Cell], Networks]:
    """The cells and networks of the CIFAR-10-C table."""
    cells = {name: Cell(method="deployed", corruption=name) for name in CORRUPTIONS}
    networks = {name: all_methods()[name].adaptor.build for name in ("soda", "soda-r", "da-direct")}
    return cells, networks


def office_home() -> tuple[dict[str, Cell], Networks]:
    """The cells and networks of the Office-Home protocol."""
    grid = find_grid("office-home")
    cells = {cell.data: cell for cell in grid if cell.method == "deployed"}
    settings = {cell.method: cell.settings for cell in grid if cell.method != "deployed"}
    networks = {
        name: all_methods()[name].but(**own).network().build for name, own in settings.items()
    }
    return cells, networks


def measure(cells: dict[str, Cell], networks: Networks) -> list[dict]:
    """Accuracy and root mean square pixel change of every untrained network."""
    rows = [
        {"network": name, "seed": seed, "pixel_change": [], "accuracy": {}}
        for name in networks
        for seed in SEEDS
    ]
    unadapted = {}
    for column, cell in cells.items():
        data = cell_images(cell)
        box = cell.box()
        images = data[:]
        unadapted[column] = accuracy(box(images), data.labels)
        for row in rows:
            changed = networks[row["network"]](row["seed"])(images)
            change = float(np.sqrt(np.mean((changed - images) ** 2)) * 255)
            row["pixel_change"].append(change)
            row["accuracy"][column] = accuracy(box(changed), data.labels)
        accuracies = [f"{row['accuracy'][column]:.1f}" for row in rows]
        print(column, unadapted[column], *accuracies, flush=True)
    rows = [{**row, "pixel_change": round(mean(row["pixel_change"]), 2)} for row in rows]
    return [{"network": None, "seed": 0, "pixel_change": 0.0, "accuracy": unadapted}, *rows]


def table(path: Path, shown: Sequence[str]) -> str:
    """The stored networks as a Markdown table; one line per network with the mean of its seeds."""
    if not path.exists():
        return NOT_RUN
    by_network: dict[str | None, list[dict]] = {}
    for row in json.loads(path.read_text())["rows"]:
        by_network.setdefault(row["network"], []).append(row)
    columns = len(by_network[None][0]["accuracy"])
    names = [column.replace("_", " ") for column in shown]
    lines = [["network of", "pixel change (of 255)", f"mean of {columns}", *names, "seeds"]]
    for network, rows in by_network.items():
        means = [mean(row["accuracy"].values()) for row in rows]
        spread = f" ({min(means):.1f} to {max(means):.1f})" if len(rows) > 1 else ""
        change = mean(row["pixel_change"] for row in rows)
        accuracies = [mean(row["accuracy"][column] for row in rows) for column in shown]
        lines.append(
            [
                METHODS_OF_NETWORK.get(network, network),
                f"{change:.1f}",
                f"{mean(means):.1f}{spread}",
                *(f"{value:.1f}" for value in accuracies),
                str(len(rows)),
            ]
        )
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--office-home",
        action="store_true",
        help="measure the networks of the Office-Home protocol on PACS",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cells, networks = office_home() if options.office_home else main_table()
    file = "starts_office_home.json" if options.office_home else "starts.json"
    first = next(iter(cells.values()))
    card = {
        "data": ", ".join(dict.fromkeys(cell.data for cell in cells.values())),
        "model": first.model,
        "severity": first.severity,
        "images": first.images,
        "versions": versions(),
    }
    out = options.out or Path("results", file)
    out.write_text(json.dumps({"card": card, "rows": measure(cells, networks)}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""How many images tau and rho call reliable, and how many of their pseudo-labels are right.

    python benchmarks/reliable_labels.py [--out results/reliable_labels.json]

The cells of `soda-tta bench run selection`: one look at each image, no learning. Needs CIFAR-10 and its ResNet-20
(SODA_TTA_DATA); labels are used to measure only. The table is part of docs/reproduction.md.
"""

import argparse
import json
from pathlib import Path

import torch

from soda_tta.bench.grids import find_grid
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.engine.run import versions
from soda_tta.objectives.reliable import Reliable


def measure() -> list[dict]:
    rows: dict[tuple[float, float], dict] = {}
    answers: dict[str, tuple] = {}
    for cell in find_grid("selection"):
        if cell.corruption not in answers:  # what is reliable does not depend on alpha
            data = cell_images(cell)
            answers[cell.corruption] = cell.box()(data[slice(0, len(data))]), data.labels
        given, labels = answers[cell.corruption]
        tau, rho = cell.settings["tau"], cell.settings["rho"]
        chosen = Reliable(tau=tau, rho=rho)(given).reliable
        found = {"reliable": int(chosen.sum()), "right": accuracy(given[chosen], labels[chosen])}
        rows.setdefault((tau, rho), {"tau": tau, "rho": rho, "by": {}})["by"][cell.corruption] = (
            found
        )
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/reliable_labels.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure()
    for row in rows:
        print(row["tau"], row["rho"], row["by"], flush=True)
    card = {
        "data": "cifar10, severity 5, 500 images",
        "model": "cifar10_resnet20",
        "queries_per_image": 1,
    }
    options.out.write_text(
        json.dumps({"card": {**card, "versions": versions()}, "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()

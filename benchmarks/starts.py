"""What the paper's networks do to the images before they have learned anything.

    python benchmarks/starts.py [--out results/starts.json]

They begin from random weights, so the first thing a run does is to distort every image; learning must first make that
good. One query an image and network. Needs the real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA); labels are used to
measure only. The table is part of docs/reproduction.md.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.recipes import methods
from soda_tta.run import versions

NETWORKS = {"soda": "soda, soda-fo, soda-o, da-pl, da-zoo-input", "soda-r": "soda-r", "da-direct": "da-direct"}
SEEDS = range(3)


def measure() -> list[dict]:
    rows = [{"network": name, "seed": seed, "moved": [], "accuracy": {}} for name in NETWORKS for seed in SEEDS]
    before = {}
    for corruption in CORRUPTIONS:
        cell = Cell(method="deployed", corruption=corruption)
        data, box = cell_images(cell), cell.box()
        images = data[slice(0, len(data))]
        before[corruption] = accuracy(box(images), data.labels)
        for row in rows:
            changed = methods()[row["network"]].adaptor.build(row["seed"])(images)
            row["moved"].append(float(np.sqrt(np.mean((changed - images) ** 2)) * 255))
            row["accuracy"][corruption] = accuracy(box(changed), data.labels)
        print(corruption, before[corruption], *(f"{row['accuracy'][corruption]:.1f}" for row in rows), flush=True)
    rows = [{**row, "moved": round(float(np.mean(row["moved"])), 2)} for row in rows]
    return [{"network": None, "seed": 0, "moved": 0.0, "accuracy": before}, *rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/starts.json"))
    options = parser.parse_args()
    card = {"data": "cifar10, severity 5, 500 images", "model": "cifar10_resnet20", "versions": versions()}
    options.out.write_text(json.dumps({"card": card, "rows": measure()}, indent=1) + "\n")


if __name__ == "__main__":
    main()

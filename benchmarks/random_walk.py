"""Does DA-PGD follow a gradient at all? The same steps with signs drawn by chance, beside its result.

    python benchmarks/random_walk.py [--out results/random_walk.json]

DA-PGD moves every pixel of an image by a step of fixed size along the sign of an estimated gradient. Five directions in
256 x 3,072 dimensions see almost nothing of that gradient, so the signs are nearly a coin's. If they were exactly that,
the image would make a random walk; what that does to the accuracy costs one query an image to measure. Step sizes go
from the paper's (1e-3, 150 steps) to where the accuracy falls as far as in the paper's table (72.39 to 24.63).
Needs the real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA); labels are used to measure only.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from soda_tta.adaptors import DEVIATION
from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.engine.run import versions
from soda_tta.methods.input_space import OwnPerturbations

WALKS = (
    (0.0, 0),
    (1e-3, 150),
    (5e-3, 30),
    (2e-2, 150),
    (5e-2, 150),
    (1e-1, 150),
)  # step in normalised pixels, steps
SEED = 0


def walked(images, lr: float, steps: int):
    moved, chance = (
        OwnPerturbations(images.copy(), step=DEVIATION * lr),
        np.random.default_rng(SEED),
    )
    everything = np.arange(len(images))
    for _ in range(steps):
        moved.move(everything, chance.integers(0, 2, images.shape, dtype=np.int8) * 2 - 1)
    return moved.images


def measure() -> list[dict]:
    rows = [{"lr": lr, "steps": steps, "moved": [], "accuracy": {}} for lr, steps in WALKS]
    for corruption in CORRUPTIONS:
        cell = Cell(method="deployed", corruption=corruption)
        data, box = cell_images(cell), cell.box()
        images = data[slice(0, len(data))]
        for row in rows:
            changed = walked(images, row["lr"], row["steps"])
            row["moved"].append(float(np.sqrt(np.mean((changed - images) ** 2)) * 255))
            row["accuracy"][corruption] = accuracy(box(changed), data.labels)
        print(corruption, *(f"{row['accuracy'][corruption]:.1f}" for row in rows), flush=True)
    return [{**row, "moved": round(float(np.mean(row["moved"])), 2)} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/random_walk.json"))
    options = parser.parse_args()
    card = {
        "data": "cifar10, severity 5, 500 images",
        "model": "cifar10_resnet20",
        "seed": SEED,
        "versions": versions(),
    }
    options.out.write_text(json.dumps({"card": card, "rows": measure()}, indent=1) + "\n")


if __name__ == "__main__":
    main()

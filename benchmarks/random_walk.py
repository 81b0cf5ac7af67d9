"""Does DA-PGD follow a gradient at all? The same steps with random signs, for comparison.

    python benchmarks/random_walk.py [--out results/random_walk.json]

DA-PGD moves every pixel by a step of fixed size along the sign of an estimated gradient. Five
directions in 256 x 3,072 dimensions contain almost nothing of that gradient, so the signs are
nearly random. If they were exactly random, the image would make a random walk. The effect of that
walk on accuracy costs one query per image to measure. Step sizes range from the paper's (1e-3,
150 steps) to where accuracy falls as far as in the paper's table (72.39 to 24.63).

Needs the real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA). Labels are used only to measure. The
table is part of docs/research/reproduction.md.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import numpy as np

from pages import NOT_RUN, markdown
from soda_tta.adaptors import DEVIATION
from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.engine.card import versions
from soda_tta.methods.input_space import OwnPerturbations

SEED = 0
WALKS = (  # step in normalised pixels, number of steps
    (0.0, 0),  # unadapted
    (1e-3, 150),  # the paper's
    (5e-3, 30),  # desk scale: the same lr x steps
    (2e-2, 150),
    (5e-2, 150),
    (1e-1, 150),
)


def walk(images, lr: float, steps: int):
    """The images after steps with random signs."""
    perturbed = OwnPerturbations(images.copy(), step=DEVIATION * lr)
    generator = np.random.default_rng(SEED)
    indices = np.arange(len(images))
    for _ in range(steps):
        signs = generator.integers(0, 2, images.shape, dtype=np.int8) * 2 - 1
        perturbed.move(indices, signs)
    return perturbed.images


def measure() -> list[dict]:
    """Accuracy and root mean square pixel change of every walk."""
    rows = [{"lr": lr, "steps": steps, "pixel_change": [], "accuracy": {}} for lr, steps in WALKS]
    for corruption in CORRUPTIONS:
        cell = Cell(method="deployed", corruption=corruption)
        data = cell_images(cell)
        box = cell.box()
        images = data[slice(0, len(data))]
        for row in rows:
            walked = walk(images, row["lr"], row["steps"])
            change = float(np.sqrt(np.mean((walked - images) ** 2)) * 255)
            row["pixel_change"].append(change)
            row["accuracy"][corruption] = accuracy(box(walked), data.labels)
        print(corruption, *(f"{row['accuracy'][corruption]:.1f}" for row in rows), flush=True)
    return [{**row, "pixel_change": round(mean(row["pixel_change"]), 2)} for row in rows]


def table(path: Path) -> str:
    """The stored walks as a Markdown table."""
    if not path.exists():
        return NOT_RUN
    header = ["step (normalised pixels)", "steps", "pixel change (of 255)"]
    lines = [[*header, "mean of 19", "five blurs", "the others"]]
    for row in json.loads(path.read_text())["rows"]:
        by_corruption = row["accuracy"]
        blurred = [value for name, value in by_corruption.items() if "blur" in name]
        others = [value for name, value in by_corruption.items() if "blur" not in name]
        means = [mean(values) for values in (by_corruption.values(), blurred, others)]
        settings = [f"{row['lr']:g}", str(row["steps"]), f"{row['pixel_change']:.1f}"]
        lines.append([*settings, *(f"{value:.1f}" for value in means)])
    return markdown(lines)


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

"""Why ma-so does nothing for EfficientNet-Lite0 at desk scale: its running statistics hardly move.

    python benchmarks/running_statistics.py [--out results/running_statistics.json]

In training mode a model replaces a share (`momentum`) of its batch-norm statistics at each step.
No weight is changed here: the images pass once, in the batches of ma-so, with a momentum that
replaces the wanted share in total, and are then classified. Needs the real ImageNet images and
EfficientNet-Lite0 (SODA_TTA_DATA). Labels are used only to measure. The table is part of
docs/research/reproduction.md.
"""

import argparse
import json
from pathlib import Path

import torch

from pages import NOT_RUN, markdown
from soda_tta.bench.grids import find_grid
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.engine.card import versions
from soda_tta.methods.tools import own_copy

MOMENTUM = 0.01  # of EfficientNet-Lite0; ResNet-20 has 0.1
NEARLY_ALL = 0.998  # the share that ma-so replaces of ResNet-20's statistics at desk scale


def probabilities_with(cell, images, share: float):
    """The model's output after a share of its statistics was replaced by those of the images."""
    module, box = own_copy(cell.box())
    norms = [layer for layer in module.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    assert all(abs(norm.momentum - MOMENTUM) < 1e-9 for norm in norms)
    batch = cell.settings["batch"]
    starts = range(0, len(images), batch)
    for norm in norms:
        norm.momentum = 1 - (1 - share) ** (1 / len(starts))
    if share:
        module.train()
        with torch.no_grad():
            for start in starts:
                box.differentiable(torch.from_numpy(images[start : start + batch]))
    module.eval()
    return box(images)


def measure() -> list[dict]:
    """Accuracy with none, with ma-so's and with nearly all of the statistics replaced."""
    cells = [cell for cell in find_grid("imagenet") if cell.method == "ma-so"]
    (steps,) = {
        cell.settings["epochs"] * -(-cell.images // cell.settings["batch"]) for cell in cells
    }
    shares = (0.0, 1 - (1 - MOMENTUM) ** steps, NEARLY_ALL)
    rows = [{"share": round(share, 3), "accuracy": {}} for share in shares]
    for cell in cells:
        data = cell_images(cell)
        images = data[slice(0, len(data))]
        for row in rows:
            probabilities = probabilities_with(cell, images, row["share"])
            row["accuracy"][cell.corruption] = accuracy(probabilities, data.labels)
            print(cell.corruption, row["share"], row["accuracy"][cell.corruption], flush=True)
    return rows


def table(path: Path) -> str:
    """The stored accuracies as a Markdown table."""
    if not path.exists():
        return NOT_RUN
    rows = json.loads(path.read_text())["rows"]
    lines = [["statistics replaced", *(name.replace("_", " ") for name in rows[0]["accuracy"])]]
    for row in rows:
        lines.append([f"{row['share']:.0%}", *(f"{a:.1f}" for a in row["accuracy"].values())])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/running_statistics.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    card = {
        "data": "imagenet-1000, severity 5, 200 images",
        "model": "imagenet_efficientnet_lite0",
        "versions": versions(),
    }
    options.out.write_text(json.dumps({"card": card, "rows": measure()}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Why ma-so does nothing for EfficientNet-Lite0 on a desk: how much of its running statistics it replaces.

    python benchmarks/running_statistics.py [--out results/running_statistics.json]

A model in training mode replaces a share (`momentum`) of its batch norms' statistics a step. No weight is changed here:
the images pass once in ma-so's batches, with a momentum that replaces as much in them as is asked for, and are then
answered. Needs the real ImageNet images and EfficientNet-Lite0 (SODA_TTA_DATA); labels are used to measure only. The
table is part of docs/reproduction.md.
"""

import argparse
import json
from pathlib import Path

import torch

from soda_tta.bench.grids import find_grid
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.engine.run import versions
from soda_tta.methods.method import own_copy

MOMENTUM = 0.01  # of EfficientNet-Lite0; ResNet-20 has 0.1
ALL = 0.998  # what ma-so replaces of ResNet-20's on a desk


def answered(cell, images, share: float):
    """The model's answers once so much of its statistics is of these images."""
    module, box = own_copy(cell.box())
    norms = [layer for layer in module.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    assert all(abs(norm.momentum - MOMENTUM) < 1e-9 for norm in norms)
    places = range(0, len(images), cell.settings["batch"])
    for norm in norms:
        norm.momentum = 1 - (1 - share) ** (1 / len(places))
    if share:
        module.train()
        with torch.no_grad():
            for start in places:
                box.differentiable(torch.from_numpy(images[start : start + cell.settings["batch"]]))
    module.eval()
    return box(images)


def measure() -> list[dict]:
    cells = [cell for cell in find_grid("imagenet") if cell.method == "ma-so"]
    steps = {cell.settings["epochs"] * -(-cell.images // cell.settings["batch"]) for cell in cells}
    (count,) = steps
    rows = [
        {"share": round(share, 3), "accuracy": {}}
        for share in (0.0, 1 - (1 - MOMENTUM) ** count, ALL)
    ]
    for cell in cells:
        data = cell_images(cell)
        images = data[slice(0, len(data))]
        for row in rows:
            row["accuracy"][cell.corruption] = accuracy(
                answered(cell, images, row["share"]), data.labels
            )
            print(cell.corruption, row["share"], row["accuracy"][cell.corruption], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/running_statistics.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    card = {"data": "imagenet-1000, severity 5, 200 images", "model": "imagenet_efficientnet_lite0"}
    text = json.dumps({"card": {**card, "versions": versions()}, "rows": measure()}, indent=1)
    options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()

"""How many images a PyTorch module should be shown at a time.

    python benchmarks/pieces.py [--out results/pieces.json]

Processor time (the process's and the kernel's for it) of one thread, in milliseconds an image, for 64 images asked in
pieces of 1 to 64; medians of three rounds in which the sizes take turns. Beyond 32 MB the C library hands every tensor
between two layers back to the kernel and asks for it anew, empty pages and all. The table is in docs/performance.md.
Needs the networks (SODA_TTA_DATA; EfficientNet-Lite0 from PyPI).
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

from pages import markdown
from soda_tta import zoo
from soda_tta.box import ModuleBox
from soda_tta.engine.run import versions

IMAGES, ROUNDS, SIZES = 64, 3, (1, 2, 4, 8, 16, 32, 64)
NETWORKS = {"cifar10_resnet20": 32, "imagenet_efficientnet_lite0": 224}  # and their pixels


def milliseconds(network: str, pixels: int) -> dict[str, float]:
    module = zoo.find(network).load()
    images = np.random.default_rng(0).random((IMAGES, 3, pixels, pixels), np.float32)
    boxes = {str(size): ModuleBox(module, logits=True, batch=size) for size in SIZES}
    boxes["chosen"] = ModuleBox(module, logits=True)
    times: dict[str, list[float]] = {name: [] for name in boxes}
    for _ in range(ROUNDS):
        for name, box in boxes.items():
            box(images[: IMAGES // 2])  # memory as the last size left it
            began = time.process_time()
            box(images)
            times[name].append((time.process_time() - began) * 1000 / IMAGES)
    return {name: round(median(values), 2) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/pieces.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = {network: milliseconds(network, pixels) for network, pixels in NETWORKS.items()}
    head = ["", *(f"{size} at a time" for size in SIZES), "as chosen"]
    body = [
        [f"{name}, {NETWORKS[name]} px", *(f"{value:.1f}" for value in row.values())]
        for name, row in rows.items()
    ]
    print(markdown([head, *body]))
    card = {
        "images": IMAGES,
        "rounds": ROUNDS,
        "threads": 1,
        "unit": "ms of processor time an image",
    }
    options.out.write_text(
        json.dumps({"card": {**card, "versions": versions()}, "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()

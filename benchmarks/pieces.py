"""How many images a PyTorch module should receive per call.

    python benchmarks/pieces.py [--out results/pieces.json]

Processor time (of the process and of the kernel for it) of one thread, in milliseconds per image,
for 64 images in pieces of 1 to 64. Medians of three rounds in which the sizes alternate. Beyond
32 MB the C library returns every tensor between two layers to the kernel and requests it again,
empty pages included. The table is in docs/research/performance.md. Needs the networks
(SODA_TTA_DATA; EfficientNet-Lite0 from PyPI).
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
from soda_tta.engine.card import versions

IMAGES = 64  # the largest piece
ROUNDS = 3
SIZES = (1, 2, 4, 8, 16, 32, 64)  # images per call
NETWORKS = {"cifar10_resnet20": 32, "imagenet_efficientnet_lite0": 224}  # pixels per side


def milliseconds_per_image(network: str, pixels: int) -> dict[str, float]:
    """By size of the pieces, and with the size that ModuleBox chooses."""
    module = zoo.find(network).load()
    images = np.random.default_rng(0).random((IMAGES, 3, pixels, pixels), np.float32)
    boxes = {str(size): ModuleBox(module, logits=True, batch=size) for size in SIZES}
    boxes["chosen"] = ModuleBox(module, logits=True)
    times: dict[str, list[float]] = {name: [] for name in boxes}
    for _ in range(ROUNDS):
        for name, box in boxes.items():
            box(images[: IMAGES // 2])  # memory is still as the previous size left it
            start = time.process_time()
            box(images)
            times[name].append((time.process_time() - start) * 1000 / IMAGES)
    return {name: round(median(values), 2) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/pieces.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = {name: milliseconds_per_image(name, pixels) for name, pixels in NETWORKS.items()}
    lines = [["", *(f"{size} at a time" for size in SIZES), "as chosen"]]
    for name, row in rows.items():
        lines.append([f"{name}, {NETWORKS[name]} px", *(f"{value:.1f}" for value in row.values())])
    print(markdown(lines))
    card = {
        "images": IMAGES,
        "rounds": ROUNDS,
        "threads": 1,
        "unit": "ms of processor time per image",
        "versions": versions(),
    }
    options.out.write_text(json.dumps({"card": card, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What a search of soda-e costs beyond its queries: its time, over the time the model needed for the same queries.

    python benchmarks/search_time.py           # results/search_time.json; both times are of one run

At 32 px a CIFAR ResNet-20, at 224 px EfficientNet-Lite0, both in ONNX Runtime on one thread.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import torch

from soda_tta import adapt, zoo
from soda_tta.box import Box
from soda_tta.box.box import Wrapper
from soda_tta.data import Corrupted, load_dataset
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "search_time.json"
BARS = {"32 px": 1.3, "224 px": 1.15}


class Timed(Wrapper):
    """Remembers when each answer began and ended."""

    def __init__(self, box: Box) -> None:
        super().__init__(box)
        self.calls: list[tuple[int, float, float]] = []

    def __call__(self, images: Array) -> Array:
        began = time.perf_counter()
        rows = self.box(images)
        self.calls.append((len(images), began, time.perf_counter()))
        return rows


def measure(data: str, model: str, images: int, budget: float) -> dict[str, float]:
    source = Corrupted(load_dataset(data).subset(slice(0, images)), "gaussian_noise", 5, seed=0)
    source[
        slice(0, images)
    ]  # corrupted images are made when first seen; that is not the search's time
    box = Timed(zoo.deployed(model, threads=1))
    run = adapt(source, box, "soda-e", budget)
    counts = np.cumsum([count for count, _, _ in box.calls])
    first = int(np.searchsorted(counts, images))  # the last request of the first look
    last = int(np.searchsorted(counts, images + run.ledger.queries["probe"]))  # and of the search
    whole = box.calls[last][2] - box.calls[first][2]
    asked = sum(end - began for _, began, end in box.calls[first + 1 : last + 1])
    return {
        "queries": run.ledger.queries["probe"],
        "seconds": whole,
        "model": asked,
        "ratio": whole / asked,
    }


def main() -> None:
    torch.set_num_threads(1)
    found = {
        "32 px": measure("cifar10", "cifar10_resnet20", 2000, 8),
        "224 px": measure("imagenet-1000", "imagenet_efficientnet_lite0", 200, 20),
    }
    for name, each in found.items():
        print(
            f"{name}: {each['queries']:,} queries, search / plain queries = {each['ratio']:.2f} (bar {BARS[name]})"
        )
    OUT.write_text(json.dumps({"torch": torch.__version__, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

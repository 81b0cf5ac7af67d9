"""What a search of soda-e costs besides its queries: its time over the model's time.

    python benchmarks/search_time.py           # writes results/search_time.json

Both times are of one run. At 32 px a CIFAR ResNet-20, at 224 px EfficientNet-Lite0, both in ONNX
Runtime on one thread. The ratios are in docs/research/soda-e.md.
"""

from __future__ import annotations

import argparse
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
RUNS = {  # data, model, images, budget in queries per image
    "32 px": ("cifar10", "cifar10_resnet20", 2000, 8),
    "224 px": ("imagenet-1000", "imagenet_efficientnet_lite0", 200, 20),
}
LIMITS = {"32 px": 1.3, "224 px": 1.15}  # the largest accepted ratio


class Timed(Wrapper):
    """Record how many images each query had, and when it began and ended."""

    def __init__(self, box: Box) -> None:
        super().__init__(box)
        self.calls: list[tuple[int, float, float]] = []

    def __call__(self, images: Array) -> Array:
        start = time.perf_counter()
        probabilities = self.box(images)
        self.calls.append((len(images), start, time.perf_counter()))
        return probabilities


def measure(data: str, model: str, images: int, budget: float) -> dict[str, float]:
    """The seconds of the search and of the model's part in it."""
    source = Corrupted(load_dataset(data).subset(slice(0, images)), "gaussian_noise", 5, seed=0)
    source[slice(0, images)]  # images are corrupted when first read; that is not the search's time
    box = Timed(zoo.deployed(model, threads=1))
    run = adapt(source, box, method="soda-e", budget=budget)
    queries = run.ledger.queries["probe"]
    counts = np.cumsum([count for count, _, _ in box.calls])
    last_selection = int(np.searchsorted(counts, images))  # the last call of the first pass
    last_probe = int(np.searchsorted(counts, images + queries))
    seconds = box.calls[last_probe][2] - box.calls[last_selection][2]
    probes = box.calls[last_selection + 1 : last_probe + 1]
    model_seconds = sum(end - start for _, start, end in probes)
    return {
        "queries": queries,
        "seconds": seconds,
        "model_seconds": model_seconds,
        "ratio": seconds / model_seconds,
    }


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    torch.set_num_threads(1)
    results = {}
    for name, settings in RUNS.items():
        results[name] = measure(*settings)
        print(
            f"{name}: {results[name]['queries']:,} queries, search / plain queries = "
            f"{results[name]['ratio']:.2f} (limit {LIMITS[name]})"
        )
    OUT.write_text(json.dumps({"torch": torch.__version__, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()

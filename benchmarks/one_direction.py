"""SODA at the paper's settings against a straightforward loop over its directions.

    python benchmarks/one_direction.py         # about 1 minute; prints the ratios

The loop is what one writes first, and what the paper's released code does: for each direction the
adaptor's network is applied layer by layer to the whole batch, the model is asked, and the loss is
computed, one direction after the other. Both use the same ResNet-20 in PyTorch, the same images,
pseudo-labels and directions, and take turns. Their losses and parameters are compared after every
step.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch.func import functional_call

from soda_tta import zoo
from soda_tta.box import Ledger, Meter
from soda_tta.data import open_images
from soda_tta.data.home import data_file
from soda_tta.engine.step import Batch, Task, losses_of_candidates
from soda_tta.methods import find_method
from soda_tta.search import MultiPointSearch
from soda_tta.types import Array

MODEL = "cifar10_resnet20"
BATCH = 256  # the paper's
STEPS = 5


class OneDirectionAtATime:
    """The straightforward loop: 1 + q passes through adaptor and model for a step."""

    def __init__(self, box, adaptor, task: Task) -> None:
        self.module = box.module
        self.prepare = box.input.prepare
        self.adaptor = adaptor
        self.task = task

    @torch.inference_mode()
    def losses(self, images: Array, indices: Array, points: Array) -> list[float]:
        pixels = torch.from_numpy(images)
        losses = []
        for point in points:
            weights = self.adaptor.unflatten(torch.from_numpy(point.astype(np.float32)))
            change = functional_call(self.adaptor.network, weights, (pixels,))
            adapted = (pixels + self.adaptor.deviation * change).clamp(0, 1)
            logits = self.module(torch.from_numpy(self.prepare(adapted.numpy())))
            probabilities = torch.softmax(logits, dim=1).numpy()
            losses.append(self.task.loss(probabilities, indices, 0.0).value)
        return losses


def measure(steps: int = STEPS, kind: str = "module") -> dict[str, float]:
    """Seconds per step of the loop over those of this package, and how far their results differ."""
    images = open_images(np.load(data_file("cifar10-test.npz"))["images"][:BATCH])
    white = zoo.deployed(MODEL, "module")
    box = zoo.deployed(MODEL, kind)
    method = find_method("soda")
    before = box(images[:])
    adaptor = method.adaptor.build(seed=0)
    meter = Meter(box, Ledger())
    selection = method.reliable(before)
    task = Task(images, meter, selection, method.objective, BATCH, 0, 0)
    batch = Batch(task, meter.asking("probe"), adaptor, np.arange(BATCH), 0)
    loop = OneDirectionAtATime(white, adaptor, task)
    ours, theirs = (
        method.search.start(adaptor.parameters, step=method.step, seed=0) for _ in range(2)
    )
    seconds: dict[str, list[float]] = {"ours": [], "loop": []}
    losses_differ = 0.0
    for number in range(steps + 1):  # the first one warms up
        began = time.perf_counter()
        own = [loss.value for loss in losses_of_candidates(batch, ours.ask())]
        middle = time.perf_counter()
        other = loop.losses(images[:], batch.indices, theirs.ask())
        ended = time.perf_counter()
        if number:
            seconds["ours"].append(middle - began)
            seconds["loop"].append(ended - middle)
        losses_differ = max(losses_differ, float(np.abs(np.subtract(own, other)).max()))
        ours.tell(own)
        theirs.tell(other)
    return {
        "ratio": float(np.median(np.divide(seconds["loop"], seconds["ours"]))),
        "seconds_per_step": float(np.median(seconds["ours"])),
        "losses_differ_by": losses_differ,
        "parameters_differ_by": distance(ours, theirs),
    }


def distance(one: MultiPointSearch, other: MultiPointSearch) -> float:
    """The largest difference of two parameters."""
    return float(np.abs(one.theta - other.theta).max())


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    for kind in ("module", "onnx"):
        facts = measure(kind=kind)
        print(kind, {name: float(f"{value:.3g}") for name, value in facts.items()})


if __name__ == "__main__":
    main()

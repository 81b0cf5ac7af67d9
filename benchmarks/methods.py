"""What each method costs on the same box: seconds a step against plain queries, and peak memory.

    python benchmarks/methods.py [--out results/methods.json] [--only soda,soda-fo]

Every method runs in a process of its own, on one thread, on the same images and the same ResNet-20 as a white box.
Plain queries are timed in that process, before and after, so that every ratio is of one machine at one time. Needs the
real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before anything that counts cores is loaded

import numpy as np
import torch

from soda_tta import adapt, all_methods, zoo
from soda_tta.data import Corrupted, load_dataset
from soda_tta.engine.adapt import protocol_card
from soda_tta.engine.events import Step
from soda_tta.engine.plan import plan_run

MODEL = "cifar10_resnet20"
IMAGES, BATCH = 512, 256  # two full batches an epoch
EPOCHS = 4  # so that a median step is not the first, which warms up
SHORT = {"epochs": EPOCHS, "batch": BATCH, "arrival": BATCH, "finetune_epochs": 1, "warmup": 2}


def shortened(name: str):
    """The method with its own settings, but few epochs; those of one epoch keep it."""
    known = all_methods()[name].settings
    if known.get("epochs", 1) <= 1:
        return all_methods()[name]
    return all_methods()[name].but(**{key: value for key, value in SHORT.items() if key in known})


def plain_seconds(box, images, batch: int) -> float:
    """Seconds of plain queries for one batch."""
    began = time.perf_counter()
    for start in range(0, len(images), batch):
        box(images[start : start + batch])
    return (time.perf_counter() - began) * batch / len(images)


def child(name: str) -> None:
    """Run one method and print its figures."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    source = Corrupted(load_dataset("cifar10").subset(slice(0, IMAGES)), "contrast", 5)
    images, box, method = source[slice(0, IMAGES)], zoo.deployed(MODEL, "module"), shortened(name)
    box(images[:64])  # warm up
    start, plain = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        [plain_seconds(box, images, BATCH)],
    )
    events: list[tuple[float, object]] = []
    began = time.perf_counter()
    run = adapt(
        images, box, method, listener=lambda event: events.append((time.perf_counter(), event))
    )
    whole = time.perf_counter() - began
    plain.append(plain_seconds(box, images, BATCH))
    batch = float(np.mean(plain))
    steps = [(later - earlier, event) for (earlier, _), (later, event) in pairwise(events)]
    steps = [(seconds, event) for seconds, event in steps if isinstance(event, Step)][1:]
    median = float(np.median([seconds for seconds, _ in steps])) if steps else None
    asked = float(np.median([event.queries for _, event in steps])) if steps else 0.0
    figures = {
        "method": name,
        "needs": method.needs,
        "steps": len(steps) + 1 if steps else 0,
        "queries_a_step": asked,
        "step_in_batches": median and median / batch,  # plain queries for one batch of images
        "step_in_its_queries": median / (batch * asked / BATCH) if median and asked else None,
        "run_in_batches": whole / batch,
        "queries_per_image": run.queries_per_image,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before_mb": start / 1024,
        "card": protocol_card(method, plan_run(method, IMAGES), source, box, None, 0),
    }
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/methods.json"))
    parser.add_argument("--only", help="methods, separated by commas")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    names = options.only.split(",") if options.only else list(all_methods())
    print(
        "| method | needs | queries a step | step / a plain batch | step / its own queries | peak memory |"
    )
    print("|---|---|---|---|---|---|")
    rows = []
    for name in names:
        command = [sys.executable, __file__, "--child", name]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise SystemExit(f"{name} failed:\n{finished.stderr}")
        row = json.loads(finished.stdout.splitlines()[-1])
        rows.append(row)
        told = [
            f"{row[fact]:.2f}" if row[fact] else "-"
            for fact in ("step_in_batches", "step_in_its_queries")
        ]
        asked = f"{row['queries_a_step']:,.0f}" if row["steps"] else "-"
        print(
            f"| {name} | {row['needs']} | {asked} | {' | '.join(told)} | {row['peak_mb']:.0f} MB |",
            flush=True,
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        json.dumps({"images": IMAGES, "batch": BATCH, "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()

"""What each method costs on the same box: seconds per step against plain queries, and peak memory.

    python benchmarks/methods.py [--out results/methods.json] [--only soda,soda-fo]

Every method runs in its own process, on one thread, on the same images and the same ResNet-20 as a
white box. Plain queries are timed in that process, before and after, so that every ratio belongs to
one machine at one time. Needs the real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA). The table is
in docs/research/performance.md.
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

os.environ["OMP_NUM_THREADS"] = "1"  # before any library that counts cores is loaded

import numpy as np
import torch

from soda_tta import adapt, all_methods, zoo
from soda_tta.data import Corrupted, load_dataset
from soda_tta.engine.card import make_card
from soda_tta.engine.events import Step
from soda_tta.engine.plan import plan_run

MODEL = "cifar10_resnet20"
IMAGES = 512  # two full batches per epoch
BATCH = 256  # the paper's
WARM_UP = 64  # images
SHORT = {  # settings of a short run, for methods that have them
    "epochs": 4,  # so that the median step is not the first one, which warms up
    "batch": BATCH,
    "arrival": BATCH,
    "finetune_epochs": 1,
    "warmup": 2,
}


def shortened(name: str):
    """The method with its own settings except for few epochs; one-epoch methods are unchanged."""
    method = all_methods()[name]
    settings = method.settings
    if settings.get("epochs", 1) <= 1:
        return method
    return method.but(**{key: value for key, value in SHORT.items() if key in settings})


def plain_seconds(box, images) -> float:
    """Seconds of plain queries for one batch."""
    start = time.perf_counter()
    for first in range(0, len(images), BATCH):
        box(images[first : first + BATCH])
    return (time.perf_counter() - start) * BATCH / len(images)


def peak_megabytes() -> float:
    """The largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str) -> dict:
    """Run one method in this process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    source = Corrupted(load_dataset("cifar10").subset(slice(0, IMAGES)), "contrast", 5)
    images = source[slice(0, IMAGES)]
    box = zoo.deployed(MODEL, "module")
    method = shortened(name)
    box(images[:WARM_UP])
    before_megabytes = peak_megabytes()
    plain = [plain_seconds(box, images)]
    events: list[tuple[float, object]] = []
    start = time.perf_counter()
    run = adapt(
        images,
        box,
        method=method,
        listener=lambda event: events.append((time.perf_counter(), event)),
    )
    whole = time.perf_counter() - start
    plain.append(plain_seconds(box, images))
    batch = float(np.mean(plain))
    steps = [
        (later - earlier, event)
        for (earlier, _), (later, event) in pairwise(events)
        if isinstance(event, Step)
    ][1:]  # the first step warms up
    facts = {
        "method": name,
        "needs": method.needs,
        "steps": 0,
        "queries_per_step": 0.0,
        "step_in_batches": None,  # in units of plain queries for one batch of images
        "step_in_its_queries": None,  # in units of plain queries for as many images
        "run_in_batches": whole / batch,
        "queries_per_image": run.queries_per_image,
        "peak_mb": peak_megabytes(),
        "before_mb": before_megabytes,
        "card": make_card(
            method, plan_run(method, IMAGES), source, box, budget=None, seed=0
        ).facts(),
    }
    if steps:
        seconds = float(np.median([seconds for seconds, _ in steps]))
        queries = float(np.median([event.queries for _, event in steps]))
        facts["steps"] = len(steps) + 1
        facts["queries_per_step"] = queries
        facts["step_in_batches"] = seconds / batch
        if queries:
            facts["step_in_its_queries"] = seconds / (batch * queries / BATCH)
    return facts


def measure_in_own_process(name: str) -> dict:
    """Run one method in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--child", name]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{name} failed:\n{process.stderr}")
    return json.loads(process.stdout.splitlines()[-1])


def print_row(row: dict) -> None:
    """One line of the Markdown table."""
    queries = f"{row['queries_per_step']:,.0f}" if row["steps"] else "-"
    ratios = [row["step_in_batches"], row["step_in_its_queries"]]
    shown = [f"{ratio:.2f}" if ratio else "-" for ratio in ratios]
    cells = [row["method"], row["needs"], queries, *shown, f"{row['peak_mb']:.0f} MB"]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/methods.json"))
    parser.add_argument("--only", help="methods, separated by commas")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child)))
        return
    names = options.only.split(",") if options.only else list(all_methods())
    header = ["method", "needs", "queries per step", "step / a plain batch"]
    print(f"| {' | '.join([*header, 'step / its own queries', 'peak memory'])} |")
    print("|---|---|---|---|---|---|")
    rows = []
    for name in names:
        rows.append(measure_in_own_process(name))
        print_row(rows[-1])
    results = {"images": IMAGES, "batch": BATCH, "rows": rows}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

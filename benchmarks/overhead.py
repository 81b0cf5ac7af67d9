"""What SODA costs besides its queries: time against plain queries, memory, and growth.

    python benchmarks/overhead.py [--out results/overhead.json]

Everything is measured in one run and reported as ratios, because seconds depend on the machine.
Needs the real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA). The results are in
docs/research/performance.md.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from soda_tta import adapt, zoo
from soda_tta.adaptors import NetworkAdaptor
from soda_tta.data import open_images
from soda_tta.data.home import data_file
from soda_tta.engine.card import make_card
from soda_tta.engine.events import Step
from soda_tta.engine.plan import plan_run
from soda_tta.methods import find_method
from soda_tta.search import MultiPointSearch

MODEL = "cifar10_resnet20"
IMAGES = 1024  # four full batches per epoch
CANDIDATES = 6  # q + 1 queries per image and step, with the paper's q = 5
CALL = CANDIDATES * 256  # images per call: what one step sends with the paper's batch
ROUNDS = 5  # plain queries and SODA alternate; the median ratio is reported
LIMITS = {"module": 1.35, "onnx": 1.6}  # the largest accepted ratio, by kind of box
COUNTS = [512, 1024, 2048, 4096]  # images, for the growth
DIRECTIONS = [1, 3, 5, 10, 20]  # directions, for the growth
MEMORY_IMAGES = 50_000
MEMORY_LIMIT = 1500  # MB
PARTS = ("adaptor", "box", "estimator", "bookkeeping")


class Timers:
    """Add up the seconds spent inside wrapped functions."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def wrap(self, name, function):
        def timed(*arguments, **named):
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                elapsed = time.perf_counter() - start
                self.seconds[name] = self.seconds.get(name, 0.0) + elapsed

        return timed


def epoch_seconds(images, box, q: int = 5) -> float:
    """Seconds from the end of the selection pass to the last step of one epoch."""
    times = []
    adapt(
        images,
        box,
        method="soda",
        epochs=1,
        q=q,
        listener=lambda event: times.append((time.perf_counter(), event)),
    )
    steps = [index for index, (_, event) in enumerate(times) if isinstance(event, Step)]
    return times[steps[-1]][0] - times[steps[0] - 1][0]


def measure_overhead(kind: str, images) -> dict:
    """The ratio of a SODA epoch to the same number of plain queries."""
    box = zoo.deployed(MODEL, kind)
    queries = CANDIDATES * len(images)
    pool = np.concatenate([images] * CANDIDATES)
    box(pool[:512])  # warm up
    plain_seconds = []
    ratios = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for first in range(0, queries, CALL):
            box(pool[first : first + CALL])
        plain_seconds.append(time.perf_counter() - start)
        ratios.append(epoch_seconds(images, box) / plain_seconds[-1])
    return {
        "box": kind,
        "ratio": float(np.median(ratios)),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "limit": LIMITS[kind],
        "plain_queries_per_second": queries / float(np.median(plain_seconds)),
        "time_shares": time_shares(kind, images),
    }


def time_shares(kind: str, images) -> dict:
    """Where the time of a run goes, as shares of it."""
    timers = Timers()
    box = zoo.deployed(MODEL, kind)
    candidates = NetworkAdaptor.candidates
    ask = MultiPointSearch.ask
    tell = MultiPointSearch.tell
    try:
        NetworkAdaptor.candidates = timers.wrap("adaptor", candidates)
        MultiPointSearch.ask = timers.wrap("estimator", ask)
        MultiPointSearch.tell = timers.wrap("estimator", tell)
        box.answer = timers.wrap("box", box.answer)
        start = time.perf_counter()
        adapt(images, box, method="soda", epochs=4)
        whole = time.perf_counter() - start
    finally:
        NetworkAdaptor.candidates = candidates
        MultiPointSearch.ask = ask
        MultiPointSearch.tell = tell
    shares = {name: seconds / whole for name, seconds in timers.seconds.items()}
    return {**shares, "bookkeeping": 1 - sum(shares.values())}


def fit_line(x: list[int], seconds: list[float]) -> dict:
    """A straight line through the measurements, with its R^2."""
    y = np.array(seconds)
    slope, constant = np.polyfit(x, y, 1)
    residual = np.square(y - (slope * np.array(x) + constant)).sum()
    return {
        "x": x,
        "seconds": [round(float(value), 3) for value in seconds],
        "slope": float(slope),
        "constant": float(constant),
        "r2": float(1 - residual / np.square(y - np.mean(y)).sum()),
    }


def measure_growth(images) -> dict:
    """Seconds of an epoch against the number of images and of candidates."""
    box = zoo.deployed(MODEL)
    by_images = [epoch_seconds(images[:count], box) for count in COUNTS]
    by_candidates = [epoch_seconds(images[:IMAGES], box, q) for q in DIRECTIONS]
    return {
        "by_images": fit_line(COUNTS, by_images),
        "by_candidates": fit_line([q + 1 for q in DIRECTIONS], by_candidates),
    }


def measure_memory() -> dict:
    """Peak memory of a process that adapts memory-mapped images (one epoch, one direction)."""
    with np.load(data_file("cifar10-test.npz")) as arrays:
        small = arrays["images"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        mapped = np.lib.format.open_memmap(path, "w+", np.uint8, (MEMORY_IMAGES, 32, 32, 3))
        for start in range(0, MEMORY_IMAGES, len(small)):
            mapped[start : start + len(small)] = small[: MEMORY_IMAGES - start]
        mapped.flush()
        del mapped
        command = [sys.executable, __file__, "--memory-child", str(path)]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def memory_child(path: str) -> dict:
    """The measured process."""
    start = psutil.Process().memory_info().rss
    box = zoo.deployed(MODEL)
    run = adapt(path, box, method="soda", epochs=1, q=1, listener=lambda event: None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "images": len(run.before),
        "peak_mb": peak / 1e6,
        "before_mb": start / 1e6,
        "limit_mb": MEMORY_LIMIT,
    }


def measure() -> dict:
    """Measure and print everything."""
    with np.load(data_file("cifar10-test.npz")) as arrays:
        images = open_images(arrays["images"])[slice(0, max(COUNTS))]
    print(f"| box | SODA epoch / plain queries | limit | {' | '.join(PARTS)} |")
    print("|---|---|---|---|---|---|---|")
    overhead = []
    for kind in LIMITS:
        row = measure_overhead(kind, images[:IMAGES])
        shares = " | ".join(f"{row['time_shares'].get(part, 0):.1%}" for part in PARTS)
        print(f"| {row['box']} | {row['ratio']:.2f} | {row['limit']} | {shares} |", flush=True)
        overhead.append(row)
    growth = measure_growth(images)
    for name, fit in growth.items():
        title = f"growth {name.replace('_', ' ')}"
        print(f"{title}: {fit['x']} -> {fit['seconds']} s, R^2 = {fit['r2']:.4f}", flush=True)
    memory = measure_memory()
    print(
        f"memory: {memory['images']:,} images, peak {memory['peak_mb']:.0f} MB "
        f"(limit {MEMORY_LIMIT:,})"
    )
    method = find_method("soda").but(epochs=1)
    source = open_images(images[:IMAGES])
    plan = plan_run(method, IMAGES)
    card = make_card(method, plan, source, zoo.deployed(MODEL), budget=None, seed=0)
    return {"overhead": overhead, "growth": growth, "memory": memory, "card": card.facts()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="also write the results as JSON")
    parser.add_argument("--memory-child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_child:
        print(json.dumps(memory_child(options.memory_child)))
        return
    results = measure()
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

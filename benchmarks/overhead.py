"""What SODA costs beyond its queries: time against plain queries of the same box, memory, and growth.

    python benchmarks/overhead.py [--out results/overhead.json]

Everything is measured in one run and reported as ratios, because seconds belong to a machine. Needs the real
CIFAR-10 images and ResNet-20 (SODA_TTA_DATA).
"""

import argparse
import json
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
from soda_tta.engine.adapt import protocol_card
from soda_tta.engine.events import Step
from soda_tta.engine.plan import plan_run
from soda_tta.methods import find_method
from soda_tta.search import MultiPointSearch

MODEL = "cifar10_resnet20"
IMAGES = 1024  # four full batches an epoch
ROUNDS = 5  # plain and SODA in turn; the median ratio is reported
BARS = {"module": 1.35, "onnx": 1.6}  # the largest ratio we accept, by kind of box


class Stopwatch:
    """Adds up the time spent inside wrapped functions."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def wrap(self, name, function):
        def timed(*arguments, **named):
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

        return timed


def time_of_epoch(images, box, q: int = 5) -> float:
    """Seconds from the end of the first look to the last step of one epoch."""
    times = []
    adapt(
        images,
        box,
        "soda",
        epochs=1,
        q=q,
        listener=lambda event: times.append((time.perf_counter(), event)),
    )
    steps = [index for index, (_, event) in enumerate(times) if isinstance(event, Step)]
    return times[steps[-1]][0] - times[steps[0] - 1][0]


def overhead(kind: str, images) -> dict:
    box = zoo.deployed(MODEL, kind)
    queries = 6 * len(images)
    pool = np.concatenate([images] * 6)[:queries]
    box(pool[:512])  # warm up
    ratios, plain_seconds, soda_seconds = [], [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for start in range(0, queries, 1536):  # the same calls a step makes: 6 x 256 images
            box(pool[start : start + 1536])
        plain = time.perf_counter() - began
        soda = time_of_epoch(images, box)
        ratios.append(soda / plain)
        plain_seconds.append(plain)
        soda_seconds.append(soda)
    return {
        "box": kind,
        "ratio": float(np.median(ratios)),
        "ratios": [round(r, 3) for r in ratios],
        "bar": BARS[kind],
        "plain_queries_per_second": queries / float(np.median(plain_seconds)),
        "split": split(kind, images),
    }


def split(kind: str, images) -> dict:
    """Where an epoch's time goes, as shares of it."""
    clock, box = Stopwatch(), zoo.deployed(MODEL, kind)
    originals = NetworkAdaptor.candidates, MultiPointSearch.ask, MultiPointSearch.tell
    answer = box.answer
    try:
        NetworkAdaptor.candidates = clock.wrap("adaptor", originals[0])
        MultiPointSearch.ask = clock.wrap("estimator", originals[1])
        MultiPointSearch.tell = clock.wrap("estimator", originals[2])
        box.answer = clock.wrap("box", answer)
        began = time.perf_counter()
        adapt(images, box, "soda", epochs=4)
        whole = time.perf_counter() - began
    finally:
        NetworkAdaptor.candidates, MultiPointSearch.ask, MultiPointSearch.tell = originals
    shares = {name: seconds / whole for name, seconds in clock.seconds.items()}
    return {**shares, "bookkeeping": 1 - sum(shares.values())}


def growth(images) -> dict:
    """Seconds of an epoch against the number of images and of directions, with the straight line's R^2."""
    box = zoo.deployed(MODEL)

    def line(x, y) -> dict:
        slope, constant = np.polyfit(x, y, 1)
        residual = np.square(y - (slope * np.array(x) + constant)).sum()
        return {
            "x": x,
            "seconds": [round(float(s), 3) for s in y],
            "slope": float(slope),
            "constant": float(constant),
            "r2": float(1 - residual / np.square(y - np.mean(y)).sum()),
        }

    counts, directions = [512, 1024, 2048, 4096], [1, 3, 5, 10, 20]
    return {
        "in_n": line(counts, np.array([time_of_epoch(images[:n], box) for n in counts])),
        "in_candidates": line(
            [q + 1 for q in directions],
            np.array([time_of_epoch(images[:1024], box, q) for q in directions]),
        ),
    }


def memory(count: int = 50_000) -> dict:
    """Peak resident memory of a process that adapts `count` memory-mapped images (one epoch, one direction)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        with np.load(data_file("cifar10-test.npz")) as arrays:
            small = arrays["images"]
        mapped = np.lib.format.open_memmap(path, "w+", np.uint8, (count, 32, 32, 3))
        for start in range(0, count, len(small)):
            mapped[start : start + len(small)] = small[: count - start]
        mapped.flush()
        del mapped
        command = [sys.executable, __file__, "--memory-child", str(path)]
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(finished.stdout.splitlines()[-1])


def memory_child(path: str) -> None:
    import resource

    start = psutil.Process().memory_info().rss
    run = adapt(path, zoo.deployed(MODEL), "soda", epochs=1, q=1, listener=lambda event: None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "images": len(run.before),
                "peak_mb": peak / 1e6,
                "before_mb": start / 1e6,
                "bar_mb": 1500,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="write the figures as JSON too")
    parser.add_argument("--memory-child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_child:
        memory_child(options.memory_child)
        return
    with np.load(data_file("cifar10-test.npz")) as arrays:
        images = open_images(arrays["images"])[slice(0, 4096)]
    results = {"overhead": [overhead(kind, images[:IMAGES]) for kind in BARS]}
    print("| box | SODA epoch / plain queries | bar | adaptor | box | estimator | bookkeeping |")
    print("|---|---|---|---|---|---|---|")
    for row in results["overhead"]:
        shares = " | ".join(
            f"{row['split'].get(part, 0):.1%}"
            for part in ("adaptor", "box", "estimator", "bookkeeping")
        )
        print(f"| {row['box']} | {row['ratio']:.2f} | {row['bar']} | {shares} |", flush=True)
    results["growth"] = growth(images)
    for name, fit in results["growth"].items():
        print(f"growth {name}: {fit['x']} -> {fit['seconds']} s, R^2 = {fit['r2']:.4f}", flush=True)
    results["memory"] = memory()
    print(
        f"memory: {results['memory']['images']:,} images, peak {results['memory']['peak_mb']:.0f} MB (bar 1,500)"
    )
    recipe = find_method("soda").but(epochs=1)
    source = open_images(images[:IMAGES])
    results["card"] = protocol_card(
        recipe, plan_run(recipe, IMAGES), source, zoo.deployed(MODEL), None, 0
    )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The ratios that decide whether soda-tta is fast, on one page: one JSON file per commit.

    make bench                                  # or: python benchmarks/ratios.py; 4 minutes
    python benchmarks/ratios.py --only epoch proxy
    python benchmarks/ratios.py --table         # only write the page again

Seconds depend on the machine, so that each figure is a ratio of two measurements of one run, which
take turns where they are short. Results lie in results/ratios/COMMIT.json, and the table of
docs/research/performance.md shows the last of them and what has changed since the one before. The
longer benchmarks measure the same with more images: overhead.py, archive.py, serve.py, pool.py.
Needs the real images and models (SODA_TTA_DATA).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np

import archive
import one_direction
import pool
import search_time
import serve
from overhead import CALL, epoch_seconds
from pages import markdown, replace_tables
from soda_tta import adapt, zoo
from soda_tta.box.backends.python import CallableBox
from soda_tta.data import load_dataset
from soda_tta.data.corruptions import corrupt
from soda_tta.data.home import data_file
from soda_tta.report import write_report

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "ratios"
PAGE = ROOT / "docs" / "research" / "performance.md"
MODEL = "cifar10_resnet20"
ROUNDS = 3  # of what takes turns; medians are reported
IMAGES = 512
DIFFERENT = 0.1  # a change of less than this share is not shown: the machine varies as much
CORRUPTED = 256
STANDARD = ("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur")
STANDARD += ("motion_blur", "zoom_blur", "snow", "frost", "fog", "brightness", "contrast")
STANDARD += ("elastic_transform", "pixelate", "jpeg_compression")


class Ratio(NamedTuple):
    """What a ratio is of, and what it should be."""

    what: str
    goal: str


RATIOS = {
    "epoch, module": Ratio("a SODA epoch / plain queries, PyTorch module", "< 1.35"),
    "epoch, onnx": Ratio("a SODA epoch / plain queries, ONNX Runtime", "< 1.6"),
    "one direction, module": Ratio("one direction at a time / a SODA step, same module", "> 2"),
    "one direction, onnx": Ratio("the same, the step with ONNX Runtime", "> 2"),
    "search": Ratio("a search of soda-e / its queries, 32 px", "< 1.3"),
    "corruptions": Ratio("15 corruptions of an image / 15 plain queries", ""),
    "apply, identity": Ratio("plain queries / `apply` without adaptor, in memory", "> 0.9"),
    "apply, typical": Ratio("plain queries / `apply` with a typical adaptor", ""),
    "apply, jpeg": Ratio("the slower of decoding and ResNet-50 / `apply` of JPEG files", "> 0.85"),
    "report": Ratio("a report / plain queries of its images", ""),
    "proxy, share": Ratio("throughput of the proxy / of the model's server", ""),
    "proxy, latency": Ratio("latency through the proxy / direct", ""),
    "images": Ratio("four times the images: time of an epoch", "about 4"),
    "directions": Ratio("q = 10 instead of 5: time of an epoch (11 / 6 queries)", "about 1.83"),
    "pixels": Ratio("four times the pixels: time of an epoch, a light model", "about 4"),
    "classes": Ratio("1,000 classes instead of 10: time of an epoch, a light model", "about 1"),
    "workers": Ratio("two workers / one, one thread each", "> 1.8"),
    "servers": Ratio("a pool of four servers / one", "> 3.6"),
    "far server": Ratio("`adapt`, 50 ms away / requests x latency / workers", "< 1.3"),
}


def photographs(count: int) -> np.ndarray:
    """CIFAR-10 images, float32 NCHW."""
    pixels = np.load(data_file("cifar10-test.npz"))["images"][:count]
    return pixels.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)


def timed(function: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def epoch() -> dict[str, float]:
    ratios = {}
    images = photographs(IMAGES)
    repeated = np.concatenate([images] * 6)  # q + 1 queries per image

    def plain(box) -> None:
        for start in range(0, len(repeated), CALL):
            box(repeated[start : start + CALL])

    for kind in ("module", "onnx"):
        box = zoo.deployed(MODEL, kind)
        plain(box)
        turns = [epoch_seconds(images, box) / timed(lambda b=box: plain(b)) for _ in range(ROUNDS)]
        ratios[f"epoch, {kind}"] = float(np.median(turns))
    return ratios


def directions_at_a_time() -> dict[str, float]:
    kinds = ("module", "onnx")
    return {f"one direction, {kind}": one_direction.measure(kind=kind)["ratio"] for kind in kinds}


def search() -> dict[str, float]:
    return {"search": search_time.measure("cifar10", MODEL, 1000, 12)["ratio"]}


def corruptions() -> dict[str, float]:
    images = np.load(data_file("cifar10-test.npz"))["images"][:CORRUPTED]
    box = zoo.deployed(MODEL)
    plain = timed(lambda: [box(photographs(CORRUPTED)) for _ in STANDARD])
    made = timed(lambda: [corrupt(images, name, 3, seed=0) for name in STANDARD])
    return {"corruptions": made / plain}


def apply_to_archives() -> dict[str, float]:
    memory = archive.in_memory(8000, 1)
    jpeg = archive.from_jpeg(80, 2)
    return {
        "apply, identity": memory["memory, identity / plain"],
        "apply, typical": memory["typical adaptor / plain"],
        "apply, jpeg": jpeg["jpeg / slower of decoding and model"],
    }


def report() -> dict[str, float]:
    data = load_dataset("cifar10").subset(slice(0, 1000))
    box = zoo.deployed(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        run = adapt(data.images, box, method="soda", epochs=1, lr=0.01)
        page = Path(folder) / "page.html"
        again = lambda: write_report(run, page, images=data.images, labels=data.labels)  # noqa: E731
        again()  # matplotlib is loaded
        return {"report": timed(again) / timed(lambda: box(data.images[:]))}


def proxy() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        bench = serve.Bench(Path(folder))
        with bench.model():
            measured = serve.identity(bench, serve.photographs(serve.CONNECTIONS), 600)
    latency = measured["latency"]
    return {
        "proxy, share": measured["throughput"]["share"],
        "proxy, latency": latency["proxied p50"] / latency["direct p50"],
    }


def light(classes: int) -> CallableBox:
    """A model that costs little: what is left is the cost of soda-tta."""
    weights = np.random.default_rng(0).normal(size=(3, classes)).astype(np.float32)

    def answer(images: np.ndarray) -> np.ndarray:
        logits = 8 * (images.mean(axis=(2, 3)) - np.float32(0.5)) @ weights
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)

    return CallableBox(answer)


def scaling() -> dict[str, float]:
    """Medians of turns: the time of an epoch with more of something over that with less."""
    images = photographs(4 * IMAGES)
    doubled = np.repeat(np.repeat(images[:256], 2, axis=2), 2, axis=3)
    box = zoo.deployed(MODEL)
    few, many = light(10), light(1000)
    pairs = {
        "images": (lambda: epoch_seconds(images, box), lambda: epoch_seconds(images[:IMAGES], box)),
        "directions": (
            lambda: epoch_seconds(images[:IMAGES], box, 10),
            lambda: epoch_seconds(images[:IMAGES], box),
        ),
        "pixels": (lambda: epoch_seconds(doubled, few), lambda: epoch_seconds(images[:256], few)),
        "classes": (
            lambda: epoch_seconds(images[:IMAGES], many),
            lambda: epoch_seconds(images[:IMAGES], few),
        ),
    }
    return {
        name: float(np.median([more() / less() for _ in range(ROUNDS)]))
        for name, (more, less) in pairs.items()
    }


def workers() -> dict[str, float]:
    return {"workers": archive.with_workers(12_000)["two workers / one"]}


def servers() -> dict[str, float]:
    speeds = []
    for count in (1, pool.SERVERS):
        with pool.pool(*[pool.POOL_SECONDS] * count) as (_, box):
            speeds.append(pool.requests_per_second(box))
    return {"servers": speeds[1] / speeds[0], "far server": pool.far(1)["ratio"]}


PARTS = {
    "epoch": epoch,
    "direction": directions_at_a_time,
    "search": search,
    "corruptions": corruptions,
    "apply": apply_to_archives,
    "report": report,
    "proxy": proxy,
    "scaling": scaling,
    "workers": workers,
    "servers": servers,
}


def commit() -> str:
    """The commit of the working tree; with "-changed" if it has changes in the package."""
    words = ["git", "-C", str(ROOT)]
    name = subprocess.run([*words, "rev-parse", "--short=10", "HEAD"], **TEXT).stdout.strip()
    changes = subprocess.run([*words, "status", "--porcelain", "src"], **TEXT).stdout.strip()
    return f"{name}-changed" if changes else name


TEXT = {"check": True, "capture_output": True, "text": True}


def stored() -> list[dict]:
    """The results of all commits, the oldest first."""
    results = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    return sorted(results, key=lambda each: each["date"])


def table(results: list[dict]) -> str:
    """The last results as a Markdown table, with what has changed since those before."""
    if not results:
        return "Not run yet."
    last = results[-1]
    before = results[-2]["ratios"] if len(results) > 1 else {}
    rows = [["ratio", "goal", last["commit"], "before"]]
    for name, (what, goal) in RATIOS.items():
        if name not in last["ratios"]:
            continue
        value = last["ratios"][name]
        earlier = before.get(name)
        changed = earlier is not None and abs(value / earlier - 1) > DIFFERENT
        rows.append([what, goal, f"{value:.2f}", f"{earlier:.2f}" if changed else ""])
    facts = f"{last['date'][:10]}, {last['cores']} cores, load {last['load']:.1f} at the beginning."
    return f"{markdown(rows)}\n\nMeasured {facts}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--table", action="store_true", help="only write the page again")
    options = parser.parse_args()
    if not options.table:
        out = RESULTS / f"{commit()}.json"
        results = {
            "commit": commit(),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
            "ratios": {},
            "seconds": {},
        }
        if out.exists():  # of other parts
            earlier = json.loads(out.read_text())
            results |= {"ratios": earlier["ratios"], "seconds": earlier["seconds"]}
        for name in options.only:
            began = time.perf_counter()
            for key, value in PARTS[name]().items():
                results["ratios"][key] = round(value, 3)
                print(f"{key:24} {value:6.2f}   {RATIOS[key].goal}", flush=True)
            results["seconds"][name] = round(time.perf_counter() - began, 1)
            RESULTS.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(replace_tables(PAGE.read_text(), {"ratios": table(stored())}))


if __name__ == "__main__":
    main()

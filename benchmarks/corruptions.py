"""How fast are the corruptions, and what do they look like?

    python benchmarks/corruptions.py                               # 10,000 images of 32 pixels, 1,000 of 224
    python benchmarks/corruptions.py --reference-python PATH       # with the time of a public implementation
    python benchmarks/corruptions.py --grid docs/research/corruptions.jpg   # the picture of 19 x 5
    python benchmarks/corruptions.py --band                        # accuracy of ResNet-20, 10,000 images

Writes results/corruptions/speed.csv, or band.csv.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = (
    "1"  # one thread a worker: two workers with two each slow one another
)

import argparse
import csv
import json
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from corruptions_scene import draw_grid
from soda_tta import Box, zoo
from soda_tta.data import Corrupted, Dataset, load_dataset
from soda_tta.data.corruptions import CORRUPTIONS, corrupt
from soda_tta.data.home import data_file

WORKERS = 2
TIMED = 20  # images, where one process is compared with one process
RESULTS = Path(__file__).resolve().parents[1] / "results" / "corruptions"

# Accuracy of the same ResNet-20 on images made by the public CIFAR generator, severity 5, 10,000 images.
BAND: dict[str, float] = json.loads((RESULTS / "public.json").read_text())

# Runs in the environment of the reference; its first call of each compiles, so it is not timed.
TIMER = """
import json, sys, time, numpy, imagecorruptions
images, seconds = numpy.load(sys.argv[1]), {}
for name in sys.argv[2:]:
    imagecorruptions.corrupt(images[0], corruption_name=name, severity=5)
    begin = time.perf_counter()
    for image in images:
        imagecorruptions.corrupt(image, corruption_name=name, severity=5)
    seconds[name] = (time.perf_counter() - begin) / len(images)
print(json.dumps(seconds))
"""


def part(images: np.ndarray, name: str, start: int) -> np.ndarray:
    return corrupt(images, name, severity=5, start=start)


def seconds_for(pool: ProcessPoolExecutor, images: np.ndarray, name: str, size: int) -> float:
    """Wall-clock time to corrupt all images, sent to the workers in pieces and collected again."""
    starts = range(0, len(images), size)
    pieces = [images[start : start + size] for start in starts]
    begin = time.perf_counter()
    corrupted = np.concatenate(list(pool.map(part, pieces, [name] * len(pieces), starts)))
    elapsed = time.perf_counter() - begin
    assert corrupted.shape == images.shape
    return elapsed


def own_seconds(images: np.ndarray, name: str) -> float:
    """Seconds an image of ours, one process and one thread."""
    part(images[:1], name, 0)  # matrices and panes are made once, as the reference compiles once
    begin = time.perf_counter()
    part(images, name, 0)
    return (time.perf_counter() - begin) / len(images)


def reference_seconds(python: Path, images: np.ndarray) -> dict[str, float]:
    """Seconds an image of the public implementation, one process, in the same run as ours."""
    file = RESULTS / "timed.npy"
    np.save(file, images)
    try:
        command = [python, "-W", "ignore", "-c", TIMER, file, *CORRUPTIONS]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    finally:
        file.unlink()


def measure_speed(python: Path | None, small_count: int, large_count: int) -> None:
    small = load_dataset("cifar10").pixels(slice(0, small_count))
    large = load_dataset("imagenet-1000").pixels(slice(0, large_count))
    theirs = reference_seconds(python, large[:TIMED]) if python else {}
    rows = []
    with ProcessPoolExecutor(WORKERS) as pool:
        list(
            pool.map(part, [small[:1]] * WORKERS, ["frost"] * WORKERS, [0] * WORKERS)
        )  # draws the panes once
        for name in CORRUPTIONS:
            row = {
                "corruption": name,
                f"{len(small)} of 32 px (s)": seconds_for(pool, small, name, 500),
                f"{len(large)} of 224 px (s)": seconds_for(pool, large, name, 25),
            }
            if theirs:
                row["reference / ours, 224 px, one process"] = theirs[name] / own_seconds(
                    large[:TIMED], name
                )
            rows.append(row)
    total: dict[str, object] = {"corruption": "all 19"}
    total |= {key: sum(row[key] for row in rows) for key in rows[0] if key.endswith("(s)")}
    report(RESULTS / "speed.csv", [*rows, total])


def measure_band() -> None:
    clean, box = load_dataset("cifar10"), zoo.deployed("cifar10_resnet20")
    photographs = {name: data_file("frost") if name == "frost" else None for name in CORRUPTIONS}
    cells = [(name, name, photographs[name]) for name in CORRUPTIONS] + [
        ("frost, drawn", "frost", None)
    ]
    rows = []
    for title, name, frost in cells:
        ours = accuracy(box, Corrupted(clean, name, 5, frost=frost))
        known = BAND[name]
        rows.append(
            {
                "corruption": title,
                "ours": ours,
                "public generator": known,
                "difference": ours - known,
            }
        )
    report(RESULTS / "band.csv", rows)


def accuracy(box: Box, dataset: Dataset) -> float:
    """Per cent of the images that keep their class."""
    starts = range(0, len(dataset), 500)
    answers = np.concatenate(
        [box(dataset[slice(start, start + 500)]).argmax(axis=1) for start in starts]
    )
    return float(100 * (answers == dataset.labels).mean())


def report(file: Path, rows: list[dict[str, object]]) -> None:
    """Prints a table for people and writes the same as CSV."""
    rows = [
        {key: f"{value:.2f}" if isinstance(value, float) else value for key, value in row.items()}
        for row in rows
    ]
    print("| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|")
    for row in rows:
        print("| " + " | ".join(str(row.get(key, "")) for key in rows[0]) + " |")
    with file.open("w", newline="") as opened:
        table = csv.DictWriter(opened, list(rows[0]), restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", type=int, default=10_000, help="images of 32 pixels")
    parser.add_argument("--large", type=int, default=1_000, help="images of 224 pixels")
    parser.add_argument(
        "--reference-python", type=Path, help="interpreter that has imagecorruptions installed"
    )
    parser.add_argument("--grid", type=Path, help="draw the picture instead")
    parser.add_argument("--band", action="store_true", help="measure accuracies instead")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if arguments.grid:
        draw_grid(arguments.grid)
    elif arguments.band:
        measure_band()
    else:
        measure_speed(arguments.reference_python, arguments.small, arguments.large)


if __name__ == "__main__":
    main()

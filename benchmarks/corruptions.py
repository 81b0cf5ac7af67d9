"""How fast are the corruptions, how hard are they, and what do they look like?

    python benchmarks/corruptions.py                               # speed: 10,000 images of 32 px,
                                                                   # 1,000 of 224 px
    python benchmarks/corruptions.py --reference-python PATH       # and the public implementation's
    python benchmarks/corruptions.py --grid docs/research/corruptions.jpg   # the picture of 19 x 5
    python benchmarks/corruptions.py --band                        # accuracy of ResNet-20

Writes results/corruptions/speed.csv, or band.csv.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one per worker: more would slow each other down

import argparse
import csv
import json
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from corruptions_scene import draw_grid
from pages import markdown
from soda_tta import Box, zoo
from soda_tta.data import Corrupted, Dataset, load_dataset
from soda_tta.data.corruptions import CORRUPTIONS, corrupt
from soda_tta.data.home import data_file

WORKERS = 2  # the cores of the machine
SMALL_CHUNK = 500  # images of 32 px per task
LARGE_CHUNK = 25  # images of 224 px per task
TIMED = 20  # images in the comparison of one process with one process
BATCH = 500  # images per query of the classifier
RESULTS = Path(__file__).resolve().parents[1] / "results" / "corruptions"

# Accuracy of the same ResNet-20 on images of the public CIFAR generator, severity 5, 10,000 images.
PUBLIC_ACCURACY: dict[str, float] = json.loads((RESULTS / "public.json").read_text())

# Runs in the environment of the reference. Its first call compiles, so it is not timed.
REFERENCE_TIMER = """
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


def corrupt_chunk(images: np.ndarray, name: str, start: int) -> np.ndarray:
    """Severity 5; `start` is the position of the first image, which seeds the noise."""
    return corrupt(images, name, severity=5, start=start)


def seconds_in_pool(pool: ProcessPoolExecutor, images: np.ndarray, name: str, chunk: int) -> float:
    """Wall-clock seconds to corrupt all images, including the transfer to and from the workers."""
    starts = range(0, len(images), chunk)
    chunks = [images[start : start + chunk] for start in starts]
    begin = time.perf_counter()
    corrupted = np.concatenate(list(pool.map(corrupt_chunk, chunks, [name] * len(chunks), starts)))
    elapsed = time.perf_counter() - begin
    assert corrupted.shape == images.shape
    return elapsed


def own_seconds(images: np.ndarray, name: str) -> float:
    """Seconds per image of our implementation, one process and one thread."""
    corrupt_chunk(images[:1], name, 0)  # builds matrices and panes once, as the reference compiles
    begin = time.perf_counter()
    corrupt_chunk(images, name, 0)
    return (time.perf_counter() - begin) / len(images)


def reference_seconds(python: Path, images: np.ndarray) -> dict[str, float]:
    """Seconds per image of the public implementation, one process, in the same run as ours."""
    file = RESULTS / "timed.npy"
    np.save(file, images)
    try:
        command = [python, "-W", "ignore", "-c", REFERENCE_TIMER, file, *CORRUPTIONS]
        process = subprocess.run(command, check=True, capture_output=True)
        return dict(json.loads(process.stdout))
    finally:
        file.unlink()


def measure_speed(python: Path | None, small_count: int, large_count: int) -> None:
    """Write speed.csv; with the interpreter of the reference also the ratio to it."""
    small = load_dataset("cifar10").pixels(slice(0, small_count))
    large = load_dataset("imagenet-1000").pixels(slice(0, large_count))
    reference = reference_seconds(python, large[:TIMED]) if python else {}
    rows = []
    with ProcessPoolExecutor(WORKERS) as pool:
        warm_up = ([small[:1]] * WORKERS, ["frost"] * WORKERS, [0] * WORKERS)
        list(pool.map(corrupt_chunk, *warm_up))  # draws the panes of frost once
        for name in CORRUPTIONS:
            row: dict[str, object] = {
                "corruption": name,
                f"{len(small)} of 32 px (s)": seconds_in_pool(pool, small, name, SMALL_CHUNK),
                f"{len(large)} of 224 px (s)": seconds_in_pool(pool, large, name, LARGE_CHUNK),
            }
            if reference:
                ratio = reference[name] / own_seconds(large[:TIMED], name)
                row["reference / ours, 224 px, one process"] = ratio
            rows.append(row)
    total: dict[str, object] = {"corruption": "all 19"}
    total |= {key: sum(row[key] for row in rows) for key in rows[0] if key.endswith("(s)")}
    report(RESULTS / "speed.csv", [*rows, total])


def measure_band() -> None:
    """Write band.csv: accuracy on our images and on those of the public generator."""
    clean = load_dataset("cifar10")
    box = zoo.deployed("cifar10_resnet20")
    cells = [(name, name, data_file("frost") if name == "frost" else None) for name in CORRUPTIONS]
    cells.append(("frost, drawn", "frost", None))
    rows = []
    for title, name, frost in cells:
        ours = accuracy(box, Corrupted(clean, name, 5, frost=frost))
        public = PUBLIC_ACCURACY[name]
        rows.append(
            {
                "corruption": title,
                "ours": ours,
                "public generator": public,
                "difference": ours - public,
            }
        )
    report(RESULTS / "band.csv", rows)


def accuracy(box: Box, dataset: Dataset) -> float:
    """Percentage of correct predictions."""
    starts = range(0, len(dataset), BATCH)
    predictions = [box(dataset[slice(s, s + BATCH)]).argmax(axis=1) for s in starts]
    return float(100 * (np.concatenate(predictions) == dataset.labels).mean())


def report(file: Path, rows: list[dict[str, object]]) -> None:
    """Print a table and write the same as CSV."""
    columns = list(rows[0])
    lines = []
    for row in rows:
        values = [row.get(column, "") for column in columns]
        lines.append([f"{v:.2f}" if isinstance(v, float) else str(v) for v in values])
    print(markdown([columns, *lines]))
    with file.open("w", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([columns, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", type=int, default=10_000, help="images of 32 pixels")
    parser.add_argument("--large", type=int, default=1_000, help="images of 224 pixels")
    parser.add_argument(
        "--reference-python", type=Path, help="interpreter that has imagecorruptions installed"
    )
    parser.add_argument("--grid", type=Path, help="only draw the picture, into this file")
    parser.add_argument("--band", action="store_true", help="only measure accuracies")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if options.grid:
        draw_grid(options.grid)
    elif options.band:
        measure_band()
    else:
        measure_speed(options.reference_python, options.small, options.large)


if __name__ == "__main__":
    main()

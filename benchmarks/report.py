"""What a report costs: seconds, memory and size of the page, for 10,000 images of 32 pixels.

    python benchmarks/report.py [--out results/report.json] [--page page.html]

A real run on CIFAR-10 under gaussian noise (SODA_TTA_DATA). The report is then made in its own
process, with images and labels, so that the results include everything it needs, also its imports.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from soda_tta import adapt, zoo
from soda_tta.data import load_dataset

IMAGES = 10_000
BUDGET = 4  # queries per image: enough for a history; the cost does not depend on the accuracy
LIMITS = {"seconds": 10.0, "megabytes": 500.0, "page_megabytes": 2.0}

# Memory is read from /proc, because getrusage still includes the size of the parent process.
MEASURED_PROCESS = """
import time
start = time.perf_counter()
import json, pathlib, re, sys
from soda_tta.report import write_report
run, images, labels, page = sys.argv[1:]
report = write_report(run, page, images=images, labels=labels, price=1.5)
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps({
    "seconds": time.perf_counter() - start,
    "megabytes": int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024,
    "page_megabytes": report.path.stat().st_size / 1e6,
    "headline": report.facts["headline"],
}))
"""


def measure(folder: Path, page: Path) -> dict:
    """Adapt, then write the report in its own process."""
    noisy = load_dataset("cifar10", corruption="gaussian_noise", severity=3)
    images = noisy.subset(slice(0, IMAGES))
    np.save(folder / "images.npy", images.pixels())
    np.save(folder / "labels.npy", images.labels)
    adapt(
        folder / "images.npy",
        zoo.deployed("cifar10_resnet20"),
        method="soda",
        budget=BUDGET,
        out=folder / "run",
        q=1,
        lr=0.05,
    )
    paths = (folder / "run", folder / "images.npy", folder / "labels.npy", page)
    command = [sys.executable, "-c", MEASURED_PROCESS, *map(str, paths)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(process.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="also write the results as JSON")
    parser.add_argument("--page", type=Path, help="keep the page in this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        results = measure(folder, options.page or folder / "page.html")
    for name, limit in LIMITS.items():
        outcome = "ok" if results[name] < limit else "EXCEEDED"
        print(f"{name:<16} {results[name]:8.2f}   limit {limit:g}   {outcome}")
    print(*results["headline"], sep="\n")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        stored = {"images": IMAGES, **results, "limits": LIMITS}
        options.out.write_text(json.dumps(stored, indent=2) + "\n")


if __name__ == "__main__":
    main()

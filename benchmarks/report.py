"""What a report costs: seconds, memory and size of the page, for 10,000 images of 32 pixels.

    python benchmarks/report.py [--out results/report.json] [--page page.html]

A real run on CIFAR-10 under gaussian noise (SODA_TTA_DATA); the report is then made in a process of its own, with
images and labels, so that everything it needs is in the figures, its imports too.
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
BUDGET = 4  # queries an image: enough for a history; a report does not depend on how well it went
BARS = {"seconds": 10.0, "megabytes": 500.0, "page_megabytes": 2.0}

MEASURED = """
import time
began = time.perf_counter()
import json, pathlib, re, sys
from soda_tta.report import write_report
run, images, labels, page = sys.argv[1:]
made = write_report(run, page, images=images, labels=labels, price=1.5)
status = pathlib.Path("/proc/self/status").read_text()  # not getrusage, which still knows the parent's size
peak = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024
facts = {"seconds": time.perf_counter() - began, "megabytes": peak, "page_megabytes": made.path.stat().st_size / 1e6}
print(json.dumps({**facts, "headline": made.facts["headline"]}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path, help="keep the page here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        noisy = load_dataset("cifar10", corruption="gaussian_noise", severity=3).subset(
            slice(0, IMAGES)
        )
        np.save(place / "images.npy", noisy.pixels())
        np.save(place / "labels.npy", noisy.labels)
        adapt(
            place / "images.npy",
            zoo.deployed("cifar10_resnet20"),
            "soda",
            BUDGET,
            out=place / "run",
            q=1,
            lr=0.05,
        )
        page = options.page or place / "page.html"
        words = [
            str(path) for path in (place / "run", place / "images.npy", place / "labels.npy", page)
        ]
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, check=True
        )
        found = json.loads(done.stdout)
    for name, bar in BARS.items():
        print(
            f"{name:<16} {found[name]:8.2f}   bar {bar:g}   {'kept' if found[name] < bar else 'MISSED'}"
        )
    print(*found["headline"], sep="\n")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(
            json.dumps({"images": IMAGES, **found, "bars": BARS}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()

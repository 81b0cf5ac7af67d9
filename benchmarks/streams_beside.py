"""The paper's soda-o and white-box tent on the changing stream, for comparison.

    python benchmarks/streams_beside.py tent      # all 25,000 images, about 2 minutes
    python benchmarks/streams_beside.py soda-o    # 256 images of each shift, about 40 minutes
    python benchmarks/streams_beside.py table

`tent` changes the weights of the model and sees batches of 200 images. `soda-o` costs hundreds of
queries per image, so it gets the first images of each shift only, as 2 arrivals of 128.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from pages import markdown, replace_tables
from soda_tta import Stream, adapt, zoo
from soda_tta.data import load_dataset
from soda_tta.types import Array
from streams import MODEL, OUT, PAGE, SEQUENCES, correct, parts, traffic

FILE = OUT.with_name("streams_beside.json")
SEQUENCE = SEQUENCES["changing"]
ARRIVAL = 128  # images, as in the paper
ARRIVALS = 2  # of each shift, for soda-o
METHODS = ("tent", "soda-o")


def tent(images: Array) -> tuple[Array, int]:
    """The classes that tent answers with, and its passes through the model."""
    found = adapt(images, zoo.deployed(MODEL, "module"), method="tent")
    return found.probabilities.argmax(axis=1), len(images)


def soda_o(images: Array) -> tuple[Array, int]:
    """The same of the paper's stream."""
    stream = Stream(zoo.deployed(MODEL, threads=1), method="soda-o")
    classes = []
    for start in range(0, len(images), ARRIVAL):
        classes.append(stream(images[start : start + ARRIVAL]).argmax(axis=1))
        print(f"{start + ARRIVAL} of {len(images)} images", flush=True)
    return np.concatenate(classes), stream.ledger.total


def run(method: str) -> dict[str, Any]:
    """Accuracy on each shift, next to the model as it is."""
    images, labels, segments = traffic(SEQUENCE, load_dataset("cifar10"))
    if method == "soda-o":
        numbers = range(len(SEQUENCE.segments))
        firsts = [np.flatnonzero(segments == number)[: ARRIVAL * ARRIVALS] for number in numbers]
        kept = np.concatenate(firsts)
        images, labels, segments = images[kept], labels[kept], segments[kept]
    start = time.perf_counter()
    classes, queries = (tent if method == "tent" else soda_o)(images)
    seconds = time.perf_counter() - start
    direct = correct(zoo.deployed(MODEL, threads=1), images, labels, 256)
    accuracy = {
        name: [float(100 * right[segments == number].mean()) for number in np.unique(segments)]
        for name, right in (("direct", direct), (method, classes == labels))
    }
    return {
        "images": len(images),
        "queries per image": queries / len(images),
        "accuracy": accuracy,
        "seconds": round(seconds),
    }


def table() -> str:
    """Accuracy on each shift, one row for each method."""
    stored = json.loads(FILE.read_text())
    live = json.loads(OUT.read_text())["changing"]
    shifts = [name.replace("_", " ") for name in SEQUENCE.segments]
    rows = [["method", "images", "queries per image", *shifts]]

    def row(label: str, images: int, queries: float, accuracies: list[float]) -> None:
        rows.append(
            [label, f"{images:,}", f"{queries:.0f}", *(f"{each:.1f}" for each in accuracies)]
        )

    spent = sum(live["queries"].values()) / live["images"]
    means = {
        which: [float(np.mean(curve[which])) for _, curve in parts(live)]
        for which in ("direct", "live")
    }
    row("direct", live["images"], 1, means["direct"])
    row("live", live["images"], spent, means["live"])
    for method in METHODS:
        if method in stored:
            found = stored[method]
            label = "tent (white box)" if method == "tent" else "soda-o"
            row(label, found["images"], found["queries per image"], found["accuracy"][method])
            if found["images"] != live["images"]:
                row("direct, the same images", found["images"], 1, found["accuracy"]["direct"])
    return markdown(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=[*METHODS, "table"])
    options = parser.parse_args()
    if options.action != "table":
        result = run(options.action)
        stored = json.loads(FILE.read_text()) if FILE.exists() else {}
        stored[options.action] = result
        FILE.write_text(json.dumps(stored, indent=1) + "\n")
    PAGE.write_text(replace_tables(PAGE.read_text(), {"beside": table()}))
    print(table())


if __name__ == "__main__":
    main()

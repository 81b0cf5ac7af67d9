"""soda-e through what lies between an image and a model, and with batches it was not made for.

    python benchmarks/transports.py            # about 10 minutes on one core; results/transports.json

Transports: 8-bit PNG, JPEG at quality 75, answers rounded to two digits, only the top three classes, only the name of
the best class without its probability. Batches: 90 % of
the images from two classes. CIFAR-10-C, severity 5, 1,000 images, at most 15 queries an image.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pages import markdown
from soda_tta import adapt, load_box, zoo
from soda_tta.box import Box, Quantised
from soda_tta.data import Corrupted, Dataset, load_dataset
from soda_tta.types import Array

CORRUPTIONS = ("gaussian_noise", "defocus_blur", "contrast")
IMAGES, BUDGET = 1000, 15
MANY = (3, 8)  # cats and ships: nine tenths of an unbalanced batch
OUT = Path(__file__).parents[1] / "results" / "transports.json"


def top_three(rows: Array) -> Array:
    kept = np.argsort(-rows, axis=1)[:, :3]
    result = np.zeros_like(rows)
    np.put_along_axis(result, kept, np.take_along_axis(rows, kept, axis=1), axis=1)
    return result


def partial(box: Box, change: Callable[[Array], Array]) -> Box:
    return load_box(lambda images: change(box(images)), partial=True)


TRANSPORTS: dict[str, Callable[[Box], Box]] = {
    "as it is": lambda box: box,
    "8-bit PNG": lambda box: Quantised(box),
    "JPEG 75": lambda box: Quantised(box, jpeg=75),
    "two digits": lambda box: partial(box, lambda rows: rows.round(2)),
    "top three": lambda box: partial(box, top_three),
    "class only": lambda box: partial(
        box, lambda rows: np.eye(rows.shape[1], dtype=np.float32)[rows.argmax(axis=1)]
    ),
}


def unbalanced(source: Dataset) -> Dataset:
    assert source.labels is not None
    many = np.flatnonzero(np.isin(source.labels, MANY))[: IMAGES * 9 // 10]
    few = np.flatnonzero(~np.isin(source.labels, MANY))[: IMAGES // 10]
    return source.subset(np.sort(np.concatenate([many, few])))


def measure(source: Any, labels: Array, box: Box) -> dict[str, Any]:
    run = adapt(source, box, "soda-e", BUDGET)
    right = [
        100 * float((rows.argmax(axis=1) == labels).mean())
        for rows in (run.before, run.probabilities)
    ]
    adopted = bool(run.verdict and run.verdict.adopt)
    return {
        "before": right[0],
        "after": right[1],
        "adopted": adopted,
        "queries_per_image": run.queries_per_image,
    }


def main() -> None:
    found = json.loads(OUT.read_text()) if OUT.exists() else {}
    data, box = load_dataset("cifar10"), zoo.deployed("cifar10_resnet20", threads=1)
    jobs: list[tuple[str, str, Dataset, Box]] = []
    for c in CORRUPTIONS:
        jobs += [
            (name, c, data.subset(slice(0, IMAGES)), wrap(box)) for name, wrap in TRANSPORTS.items()
        ]
    for c in ("clean", "gaussian_noise", "contrast", "jpeg_compression", "fog"):
        jobs.append(("two classes 90 %", c, unbalanced(data), box))
    for name, c, clean, wrapped in jobs:
        key = f"{name}, {c}"
        if key in found:
            continue
        assert clean.labels is not None
        source = clean if c == "clean" else Corrupted(clean, c, 5, seed=0)
        found[key] = measure(source, clean.labels, wrapped)
        OUT.write_text(json.dumps(found, indent=1) + "\n")
        print(key, found[key], flush=True)
    print(table())


def table() -> str:
    lines = [["", "unadapted", "soda-e", "adopted", "queries an image"]]
    found = json.loads(OUT.read_text())
    in_order = [
        key for name in (*TRANSPORTS, "two classes") for key in found if key.startswith(name)
    ]
    for key, each in ((key, found[key]) for key in in_order):
        accuracies = [f"{each['before']:.1f}", f"{each['after']:.1f}"]
        adopted = "yes" if each["adopted"] else "no"
        lines.append(
            [key.replace("_", " "), *accuracies, adopted, f"{each['queries_per_image']:.1f}"]
        )
    return markdown(lines)


if __name__ == "__main__":
    main()

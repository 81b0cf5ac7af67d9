"""soda-e through lossy transports, with partial responses and with unbalanced batches.

    python benchmarks/transports.py            # about 10 minutes on one core

Transports: 8-bit PNG, JPEG at quality 75, probabilities rounded to two digits, only the top three
classes, only the best class without its probability. Unbalanced batches: 90 % of the images are of
two classes. CIFAR-10-C, severity 5, 1,000 images, at most 15 queries per image. Writes
results/transports.json; finished cells are not run again.
"""

from __future__ import annotations

import argparse
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

OUT = Path(__file__).parents[1] / "results" / "transports.json"
CORRUPTIONS = ("gaussian_noise", "defocus_blur", "contrast")  # a noise, a blur, a tone
UNBALANCED_CORRUPTIONS = ("clean", "gaussian_noise", "contrast", "jpeg_compression", "fog")
UNBALANCED = "90 % from two classes"
FREQUENT_CLASSES = (3, 8)  # cats and ships
IMAGES = 1000
BUDGET = 15  # queries per image


def top_three(probabilities: Array) -> Array:
    """All but the three largest probabilities of each row set to zero."""
    kept = np.argsort(-probabilities, axis=1)[:, :3]
    result = np.zeros_like(probabilities)
    np.put_along_axis(result, kept, np.take_along_axis(probabilities, kept, axis=1), axis=1)
    return result


def best_class(probabilities: Array) -> Array:
    """A one at the best class of each row."""
    return np.eye(probabilities.shape[1], dtype=np.float32)[probabilities.argmax(axis=1)]


def partial(box: Box, change: Callable[[Array], Array]) -> Box:
    """A box whose responses are changed, so that rows need not sum to 1."""
    return load_box(lambda images: change(box(images)), partial=True)


TRANSPORTS: dict[str, Callable[[Box], Box]] = {
    "unchanged": lambda box: box,
    "8-bit PNG": lambda box: Quantised(box),
    "JPEG 75": lambda box: Quantised(box, jpeg=75),
    "two digits": lambda box: partial(box, lambda probabilities: probabilities.round(2)),
    "top three": lambda box: partial(box, top_three),
    "class only": lambda box: partial(box, best_class),
}


def unbalanced(source: Dataset) -> Dataset:
    """A subset in which nine of ten images are of the two frequent classes."""
    assert source.labels is not None
    frequent = np.isin(source.labels, FREQUENT_CLASSES)
    many = np.flatnonzero(frequent)[: IMAGES * 9 // 10]
    few = np.flatnonzero(~frequent)[: IMAGES // 10]
    return source.subset(np.sort(np.concatenate([many, few])))


def measure(source: Dataset, labels: Array, box: Box) -> dict[str, Any]:
    """Accuracy before and after soda-e, in percent."""
    run = adapt(source, box, method="soda-e", budget=BUDGET)
    return {
        "before": 100 * float((run.before.argmax(axis=1) == labels).mean()),
        "after": 100 * float((run.probabilities.argmax(axis=1) == labels).mean()),
        "adopted": bool(run.verdict and run.verdict.adopt),
        "queries_per_image": run.queries_per_image,
    }


def cells() -> list[tuple[str, str, Dataset, Box]]:
    """What is measured: name, corruption, clean images, box."""
    data = load_dataset("cifar10")
    box = zoo.deployed("cifar10_resnet20", threads=1)
    first = data.subset(slice(0, IMAGES))
    return [
        *(
            (name, corruption, first, wrap(box))
            for corruption in CORRUPTIONS
            for name, wrap in TRANSPORTS.items()
        ),
        *((UNBALANCED, corruption, unbalanced(data), box) for corruption in UNBALANCED_CORRUPTIONS),
    ]


def table() -> str:
    """The stored results as a Markdown table, transport by transport."""
    results = json.loads(OUT.read_text())
    lines = [["", "unadapted", "soda-e", "adopted", "queries per image"]]
    for transport in (*TRANSPORTS, UNBALANCED):
        for name, result in results.items():
            if name.startswith(f"{transport},"):
                accuracies = [f"{result['before']:.1f}", f"{result['after']:.1f}"]
                adopted = "yes" if result["adopted"] else "no"
                queries = f"{result['queries_per_image']:.1f}"
                lines.append([name.replace("_", " "), *accuracies, adopted, queries])
    return markdown(lines)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for transport, corruption, clean, box in cells():
        name = f"{transport}, {corruption}"
        if name in results:
            continue
        assert clean.labels is not None
        source = clean if corruption == "clean" else Corrupted(clean, corruption, 5, seed=0)
        results[name] = measure(source, clean.labels, box)
        OUT.write_text(json.dumps(results, indent=1) + "\n")
        print(name, results[name], flush=True)
    print(table())


if __name__ == "__main__":
    main()

"""Frames of few scenes: how often soda-e adopts a harm, and how often it adopts a gain.

    python benchmarks/scenes.py

Each run adapts frames of some CIFAR-10 scenes (ResNet-20; a frame is the image shifted by up to two
pixels, brighter or darker by 5 %, with a little noise; then corrupted) and is measured with labels
on 1,000 fresh images with the same corruption. Half of the shifts leave little to gain, the others
much. Runs that are in results/scenes.json are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from pages import markdown
from soda_tta import adapt, zoo
from soda_tta.data import load_dataset
from soda_tta.data.corruptions import corrupt
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "scenes.json"
LAYOUTS = ((5, 200), (20, 50), (60, 20), (150, 8))  # scenes, frames of each
LITTLE_TO_GAIN = (("clean", 0), ("brightness", 2), ("gaussian_noise", 1), ("jpeg_compression", 1))
MUCH_TO_GAIN = (("contrast", 5), ("gaussian_noise", 5), ("impulse_noise", 5), ("gaussian_blur", 5))
FRESH = 1000  # images to measure on
POINT = 1.0  # smaller changes of accuracy are neither gain nor harm


def frames(images: Array, count: int, random: np.random.Generator) -> Array:
    """Frames of scenes, scene by scene."""
    shown = np.repeat(images, count, axis=0)
    padded = np.pad(shown, ((0, 0), (0, 0), (2, 2), (2, 2)), mode="edge")
    height, width = images.shape[2:]
    for index, frame in enumerate(shown):
        down, right = random.integers(0, 5, 2)
        frame[:] = padded[index, :, down : down + height, right : right + width]
    light = 1 + 0.05 * random.standard_normal((len(shown), 1, 1, 1))
    noise = 0.01 * random.standard_normal(shown.shape)
    clipped: Array = np.clip(shown * light + noise, 0, 1).astype(np.float32)
    return clipped


def shifted(images: Array, corruption: str, severity: int, seed: int) -> Array:
    """The images with a corruption."""
    if corruption == "clean":
        return images
    return np.asarray(corrupt(images, corruption, severity, seed=seed), np.float32)


def measure(
    box: Any, data: Any, layout: tuple[int, int], shift: tuple[str, int], seed: int
) -> dict[str, Any]:
    """One run, and its accuracy on fresh images."""
    scenes, count = layout
    random = np.random.default_rng([scenes, count, seed])
    order = random.permutation(len(data))
    shown = frames(data[order[:scenes]], count, random)
    fresh = shifted(data[order[-FRESH:]], *shift, seed=seed + 1)
    labels = np.asarray(data.labels)[order[-FRESH:]]
    run = adapt(shifted(shown, *shift, seed=seed), box, seed=seed)
    before = 100 * float((box(fresh).argmax(axis=1) == labels).mean())
    found = run.candidate.adaptor if run.candidate is not None else run.adaptor
    after = 100 * float((box(found(fresh)).argmax(axis=1) == labels).mean())
    verdict = run.verdict
    return {
        "adopted": verdict is not None and verdict.adopt,
        "independent": None if verdict is None else verdict.independent,
        "p": None if verdict is None else verdict.p_value,
        "gain": round(after - before, 1),  # of what was found, adopted or not
        "queries": run.ledger.total,
        "reason": run.reason,
    }


def table(results: dict[str, Any]) -> str:
    """Adoptions of gains and of harms by layout."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for key, result in results.items():
        layout, shift, _ = key.split(", ")
        corruption, severity = shift.rsplit(" ", 1)
        kind = "much" if (corruption, int(severity)) in MUCH_TO_GAIN else "little"
        row = counts[(layout, kind)]
        harmful = result["gain"] < -POINT
        helpful = result["gain"] > POINT
        row[0] += 1
        row[1] += result["adopted"]
        row[2] += result["adopted"] and harmful
        row[3] += helpful
        row[4] += result["adopted"] and helpful
    lines = [["scenes x frames", "to gain", "runs", "adopted", "harms", "true gains"]]
    for (layout, kind), (runs, adopted, harms, helpful, right) in counts.items():
        gains = f"{right} of {helpful}"
        lines.append([layout, kind, str(runs), str(adopted), str(harms), gains])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    options = parser.parse_args()
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    if not options.table:
        box = zoo.deployed("cifar10_resnet20", threads=1)
        data = load_dataset("cifar10")
        for seed in range(options.seeds):
            for layout in LAYOUTS:
                for shift in (*LITTLE_TO_GAIN, *MUCH_TO_GAIN):
                    key = f"{layout[0]} x {layout[1]}, {shift[0]} {shift[1]}, {seed}"
                    if key not in results:
                        results[key] = measure(box, data, layout, shift, seed)
                        OUT.write_text(json.dumps(results, indent=1) + "\n")
                        print(key, results[key], flush=True)
    print(table(results))


if __name__ == "__main__":
    main()

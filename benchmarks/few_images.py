"""How much of a gain is kept with few images: several draws, several boxes.

    python benchmarks/few_images.py

Each run adapts a few images with one corruption at the default settings of soda-e. What its search
found is measured with labels on fresh images of the same corruption, adopted or not, so the table
says how many true gains the verdict let pass and how many harms. No choice was made on these
numbers. Runs that are in results/few_images.json are not repeated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pages import markdown
from soda_tta import adapt, zoo
from soda_tta.data import Corrupted, Dataset, load_dataset

OUT = Path(__file__).parents[1] / "results" / "few_images.json"
POINT = 1.0  # smaller changes of accuracy are neither gain nor harm
LARGE = 3.7  # points: the smallest gain of the trials that a verdict missed
SMALL_IMAGES = (
    *("gaussian_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("frost", "fog", "contrast", "jpeg_compression", "clean"),
)
LARGE_IMAGES = (
    *("motion_blur", "shot_noise", "fog", "contrast"),
    *("pixelate", "brightness", "defocus_blur", "clean"),
)


class Setting(NamedTuple):
    """Which images, in front of which model, at which price."""

    data: str
    model: str
    images: int
    budget: float
    corruptions: tuple[str, ...]
    severity: int
    fresh: int
    draws: int

    def __str__(self) -> str:
        return f"{self.model}, {self.images} images, budget {self.budget:g}"


SETTINGS = (
    Setting("cifar10", "cifar10_resnet32", 300, 30, SMALL_IMAGES, 5, 1000, 3),
    Setting("cifar10", "cifar10_resnet32", 120, 30, SMALL_IMAGES, 5, 1000, 3),
    Setting("cifar100", "cifar100_resnet32", 300, 30, SMALL_IMAGES, 5, 1000, 3),
    Setting("imagenet-val-2000", "imagenet_efficientnet_lite0", 400, 10, LARGE_IMAGES, 4, 400, 1),
)


def measure(setting: Setting, data: Dataset, box: Any, corruption: str, draw: int) -> Any:
    """One run, and the accuracy of what it found on fresh images."""
    order = np.random.default_rng([draw, setting.images]).permutation(len(data))

    def shifted(places: Any, seed: int) -> Any:
        chosen = data.subset(places)
        if corruption == "clean":
            return chosen
        return Corrupted(chosen, corruption, setting.severity, seed=seed)

    run = adapt(shifted(order[: setting.images], draw), box, budget=setting.budget, seed=draw)
    places = order[-setting.fresh :]
    fresh = shifted(places, draw + 100)
    labels = np.asarray(data.labels)[places]
    found = run.candidate.adaptor if run.candidate is not None else run.adaptor
    right = np.zeros(2)
    for start in range(0, setting.fresh, 50):
        images = fresh[slice(start, start + 50)]
        truth = labels[start : start + 50]
        answers = (box(images), box(found(images)))
        right += [(each.argmax(axis=1) == truth).sum() for each in answers]
    before, after = (100 * right / setting.fresh).tolist()
    return {
        "adopted": run.verdict is not None and run.verdict.adopt,
        "p": None if run.verdict is None else run.verdict.p_value,
        "judged": None if run.verdict is None else run.verdict.images,
        "before": round(before, 1),
        "found": round(after - before, 1),
        "queries": run.ledger.total,
    }


def table(results: dict[str, Any]) -> str:
    """Adoptions of true gains and of harms by setting."""
    header = ["model, images, queries per image", "runs", "gains over 1 point adopted"]
    header += [f"gains over {LARGE:g} points adopted", "harms adopted", "gain found", "gain kept"]
    lines = [header]
    for setting in SETTINGS:
        runs = [each for key, each in results.items() if key.startswith(f"{setting}, ")]
        if not runs:
            continue
        row = [str(setting), str(len(runs))]
        for least in (POINT, LARGE):
            helpful = [run for run in runs if run["found"] > least]
            row.append(f"{sum(run['adopted'] for run in helpful)} of {len(helpful)}")
        harmful = [run for run in runs if run["found"] < -POINT]
        row.append(f"{sum(run['adopted'] for run in harmful)} of {len(harmful)}")
        row.append(f"{np.mean([run['found'] for run in runs]):+.1f}")
        row.append(f"{np.mean([run['found'] * run['adopted'] for run in runs]):+.1f}")
        lines.append(row)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    options = parser.parse_args()
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for setting in () if options.table else SETTINGS:
        box = zoo.deployed(setting.model, threads=1)
        data = load_dataset(setting.data)
        for draw in range(setting.draws):
            for corruption in setting.corruptions:
                key = f"{setting}, {corruption}, {draw}"
                if key not in results:
                    results[key] = measure(setting, data, box, corruption, draw)
                    OUT.write_text(json.dumps(results, indent=1) + "\n")
                    print(key, results[key], flush=True)
    print(table(results))


if __name__ == "__main__":
    main()

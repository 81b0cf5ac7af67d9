"""Which label-free objective follows accuracy? Rank correlation over candidate changes of images.

    python benchmarks/objectives.py run            # about 10 minutes on one core
    python benchmarks/objectives.py table

Candidates are the identity and random sums of one to three moves of the restoration bank. The
objective of soda-e was chosen on six corruptions of CIFAR-10-C (CHOSEN_ON); the other corruptions,
CIFAR-100-C and ImageNet-C were not used to choose. Writes results/objectives.json; finished
corruptions are not run again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from pages import markdown
from soda_tta import zoo
from soda_tta.adaptors import Bank
from soda_tta.adaptors.parts import moves
from soda_tta.data import Corrupted, load_dataset
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.judging.verdict import moved
from soda_tta.objectives.agreement import shared_information_of_each
from soda_tta.objectives.equations import cross_entropy, entropy, mutual_information
from soda_tta.objectives.reliable import Reliable
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "objectives.json"
CHOSEN_ON = (
    "shot_noise",
    "motion_blur",
    "frost",
    "contrast",
    "jpeg_compression",
    "brightness",
)
CANDIDATES = 24  # per corruption, with the identity
SEED = 0
SETS = {  # model, corruptions, images
    "cifar10": ("cifar10_resnet20", tuple(CORRUPTIONS), 250),
    "cifar100": ("cifar100_resnet20", tuple(CORRUPTIONS), 250),
    "imagenet-1000": ("imagenet_efficientnet_lite0", ("gaussian_noise", "contrast", "fog"), 100),
}


def objective_values(probabilities: Array, second: Array, unadapted: Array) -> dict[str, float]:
    """Every objective for one candidate; more is better.

    `second` are the responses to the moved images, `unadapted` those to the unadapted images.
    """
    selection = Reliable(tau=0.9, rho=0.0)(unadapted)
    reliable = selection.reliable
    information = mutual_information(probabilities)
    mean_entropy = float(entropy(probabilities).mean())
    labels_loss = cross_entropy(probabilities[reliable], selection.labels[reliable])
    # the mean prediction may be as unbalanced as it was for the unadapted images, but not more
    prior = unadapted.mean(axis=0) + 1e-3
    average = probabilities.mean(axis=0)
    relative = -(average * np.log(average / prior * prior.sum() + 1e-5)).sum()
    confidence = float(probabilities[reliable].max(axis=1).mean()) if reliable.any() else 0.0
    agreement = float((probabilities.argmax(axis=1) == second.argmax(axis=1)).mean())
    shared = float(shared_information_of_each(probabilities, second).mean())
    return {
        "mutual information": information,
        "minus entropy": -mean_entropy,
        "mutual information + reliable labels": information - labels_loss,
        "mutual information, first predictions as prior": float(relative - mean_entropy),
        "confidence of reliable images": confidence,
        "agreement of two views": agreement,
        "shared information of two views": shared,
    }


def candidates() -> Array:
    """The identity, then random sums of one to three moves."""
    generator = np.random.default_rng(SEED)
    steps = moves()
    changes = [np.zeros(steps.shape[1])]
    for _ in range(CANDIDATES - 1):
        chosen = generator.choice(len(steps), generator.integers(1, 4), replace=False)
        changes.append(steps[chosen].sum(axis=0))
    return np.array(changes)


def correlations(data: str, model: str, corruption: str, images: int) -> dict[str, float]:
    """The rank correlation of every objective with accuracy on one corruption."""
    source = Corrupted(load_dataset(data).subset(slice(0, images)), corruption, 5, seed=0)
    pixels = source[slice(0, images)]
    assert source.labels is not None
    box = zoo.deployed(model, threads=1)
    bank = Bank.for_size(pixels.shape).build()
    unadapted = box(pixels)
    rows = []
    accuracies = []
    for theta in candidates():
        adapted = bank.candidates(pixels, theta[None])[0]
        probabilities = box(adapted)
        rows.append(objective_values(probabilities, box(moved(adapted)), unadapted))
        accuracies.append(float((probabilities.argmax(axis=1) == source.labels).mean()))
    found = {name: spearmanr([row[name] for row in rows], accuracies).statistic for name in rows[0]}
    return {name: round(float(np.nan_to_num(value)), 3) for name, value in found.items()}


def run() -> None:
    """Measure every corruption that is not stored yet."""
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for data, (model, corruptions, images) in SETS.items():
        for corruption in corruptions:
            name = f"{data} {corruption}"
            if name not in results:
                results[name] = correlations(data, model, corruption, images)
                OUT.write_text(json.dumps(results, indent=1) + "\n")
                print(name, results[name], flush=True)


def table() -> str:
    """The stored correlations as a Markdown table: mean and worst of each group."""
    results = json.loads(OUT.read_text())
    others = [name for name in CORRUPTIONS if name not in CHOSEN_ON]
    groups = {
        "CIFAR-10-C, the six it was chosen on": [f"cifar10 {name}" for name in CHOSEN_ON],
        "CIFAR-10-C, the other thirteen": [f"cifar10 {name}" for name in others],
        "CIFAR-100-C": [name for name in results if name.startswith("cifar100 ")],
        "ImageNet-C": [name for name in results if name.startswith("imagenet")],
    }
    groups = {title: [n for n in names if n in results] for title, names in groups.items()}
    groups = {title: names for title, names in groups.items() if names}
    lines = [["rank correlation with accuracy (mean, worst)", *groups]]
    for objective in next(iter(results.values())):
        line = [objective]
        for names in groups.values():
            values = [results[name][objective] for name in names]
            line.append(f"{np.mean(values):.2f}, {min(values):.2f}")
        lines.append(line)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "table"])
    if parser.parse_args().command == "run":
        run()
    else:
        print(table())


if __name__ == "__main__":
    main()

"""Which label-free objective tracks accuracy? Rank correlation over candidate changes of the images.

    python benchmarks/objectives.py run            # about 10 minutes on one core; results/objectives.json
    python benchmarks/objectives.py table

Candidates are the moves of the restoration bank and sums of up to three of them. The objective of soda-e was chosen on
SIX corruptions of CIFAR-10-C; the others, CIFAR-100-C and ImageNet-C are reported as they came out.
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

SIX = (
    "shot_noise",
    "motion_blur",
    "frost",
    "contrast",
    "jpeg_compression",
    "brightness",
)  # chosen on
CANDIDATES, IMAGES, SEED = 24, 250, 0
OUT = Path(__file__).parents[1] / "results" / "objectives.json"
SETS = {  # data, model, corruptions, images
    "cifar10": ("cifar10_resnet20", tuple(CORRUPTIONS), IMAGES),
    "cifar100": ("cifar100_resnet20", tuple(CORRUPTIONS), IMAGES),
    "imagenet-1000": ("imagenet_efficientnet_lite0", ("gaussian_noise", "contrast", "fog"), 100),
}


def objectives(answers: Array, second: Array, first_look: Array) -> dict[str, float]:
    """What each objective says of one candidate; more is better."""
    trusted = Reliable(tau=0.9, rho=0.0)(first_look)
    labels, reliable = trusted.labels, trusted.reliable
    prior = first_look.mean(axis=0) + 1e-3
    average = answers.mean(axis=0)
    return {
        "mutual information": mutual_information(answers),
        "minus entropy": -float(entropy(answers).mean()),
        "mutual information + reliable labels": mutual_information(answers)
        - cross_entropy(answers[reliable], labels[reliable]),
        # the mean answer may differ between classes, but not more than it did in the first look
        "mutual information, own prior": float(
            -(average * np.log(average / prior * prior.sum() + 1e-5)).sum()
            - entropy(answers).mean()
        ),
        "confidence of the reliable": float(answers[reliable].max(axis=1).mean())
        if reliable.any()
        else 0.0,
        "agreement of two looks": float((answers.argmax(axis=1) == second.argmax(axis=1)).mean()),
        "shared information of two looks": float(
            shared_information_of_each(answers, second).mean()
        ),
    }


def candidates() -> Array:
    """The image as it is, then random sums of one to three moves."""
    generator, steps = np.random.default_rng(SEED), moves()
    chosen = [
        generator.choice(len(steps), generator.integers(1, 4), replace=False)
        for _ in range(CANDIDATES - 1)
    ]
    return np.array([np.zeros(steps.shape[1]), *(steps[each].sum(axis=0) for each in chosen)])


def study(data: str, model: str, corruption: str, images: int) -> dict[str, float]:
    """The correlation of every objective with accuracy on one corruption."""
    source = Corrupted(load_dataset(data).subset(slice(0, images)), corruption, 5, seed=0)
    pixels, labels = source[slice(0, images)], source.labels
    assert labels is not None
    box = zoo.deployed(model, threads=1)
    bank = Bank.for_size(pixels.shape).build()
    rows, accuracies = [], []
    first_look = box(pixels)
    for theta in candidates():
        adapted = bank.candidates(pixels, theta[None])[0]
        answers, second = box(adapted), box(moved(adapted))
        rows.append(objectives(answers, second, first_look))
        accuracies.append(float((answers.argmax(axis=1) == labels).mean()))
    correlations = {
        name: spearmanr([row[name] for row in rows], accuracies).statistic for name in rows[0]
    }
    return {name: round(float(np.nan_to_num(value)), 3) for name, value in correlations.items()}


def run() -> None:
    """Finished corruptions are not run again."""
    found = json.loads(OUT.read_text()) if OUT.exists() else {}
    for data, (model, corruptions, images) in SETS.items():
        for corruption in corruptions:
            name = f"{data} {corruption}"
            if name not in found:
                found[name] = study(data, model, corruption, images)
                OUT.write_text(json.dumps(found, indent=1) + "\n")
                print(name, found[name], flush=True)


def table() -> str:
    found = json.loads(OUT.read_text())
    groups = {
        "CIFAR-10-C, the six it was chosen on": [f"cifar10 {c}" for c in SIX],
        "CIFAR-10-C, the other thirteen": [f"cifar10 {c}" for c in CORRUPTIONS if c not in SIX],
        "CIFAR-100-C": [name for name in found if name.startswith("cifar100 ")],
        "ImageNet-C": [name for name in found if name.startswith("imagenet")],
    }
    groups = {group: [name for name in names if name in found] for group, names in groups.items()}
    groups = {group: names for group, names in groups.items() if names}
    lines = [["rank correlation with accuracy (mean, worst)", *groups]]
    for objective in next(iter(found.values())):
        cells = []
        for names in groups.values():
            values = [found[name][objective] for name in names]
            cells.append(f"{np.mean(values):.2f}, {min(values):.2f}")
        lines.append([objective, *cells])
    return markdown(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "table"])
    print(run() or "" if parser.parse_args().command == "run" else table())

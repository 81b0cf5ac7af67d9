"""How much of the traffic must an attacker send to have a harmful adaptor promoted?

    python benchmarks/poisoning.py

Honest images are clean CIFAR-10, the model is ResNet-20, and the harmful adaptors are random
changes of the images. The attacker is given everything: the candidate is the one that it wants, its
images have the condition of the honest ones, and each is evidence that counts as much as one image
can count, without the model or the pixels standing in the way. So the true share is larger. Writes
results/poisoning.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pages import markdown
from soda_tta import zoo
from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.data import load_dataset
from soda_tta.judging.gate import Gate
from soda_tta.judging.sequential import level_of
from soda_tta.judging.verdict import moved
from soda_tta.types import Array
from verdicts import image_indices, random_changes

OUT = Path(__file__).parents[1] / "results" / "poisoning.json"
IMAGES = 500
CHANGES = 24
EVIDENCE = 1000  # images after which a candidate is given up (engine/live_units.py)
SHARES = np.arange(0.02, 0.72, 0.02)
HARMS = ((-100, -20), (-20, -10), (-10, -5), (-5, -2), (-2, -1))


def promoted(current: Array, candidate: Array, share: float, seed: int) -> bool:
    """Whether the gate promotes a candidate if this share of the evidence is the attacker's."""
    random = np.random.default_rng(seed)
    gate = Gate(level_of(1, 0.01))
    classes = current.shape[2]
    for _ in range(EVIDENCE):
        if random.random() < share:
            label = random.integers(classes)
            confused = np.eye(classes)[[label, (label + 1) % classes]]  # two views, two classes
            certain = np.eye(classes)[[label, label]]
            gate.add(confused, certain)
        else:
            image = random.integers(len(current))
            gate.add(current[image], candidate[image])
        if gate.passed:
            return True
    return False


def needed(current: Array, candidate: Array) -> float | None:
    """The smallest share that has the candidate promoted in most of three attempts."""
    for share in SHARES:
        if sum(promoted(current, candidate, share, seed) for seed in range(3)) >= 2:
            return float(share)
    return None


def measure() -> list[dict[str, Any]]:
    """Every harmful change, and the share that it needs."""
    box = zoo.deployed("cifar10_resnet20", threads=1)
    data = load_dataset("cifar10")
    places = image_indices(np.asarray(data.labels), IMAGES, unbalanced=False)
    labels = np.asarray(data.labels)[places]
    images = data.subset(places)[slice(0, IMAGES)]
    rows = []
    for change in random_changes(CHANGES):
        adapted = BankAdaptor(structure=Bank(), parameters=change.astype(np.float32))(images)
        rows.append(np.stack([box(adapted), box(moved(adapted))], axis=1))
    right = [100 * (each[:, 0].argmax(axis=1) == labels).mean() for each in rows]
    cases = []
    for views, accuracy in zip(rows[1:], right[1:], strict=True):
        if accuracy < right[0] - 1:
            share = needed(rows[0], views)
            cases.append({"change": round(accuracy - right[0], 1), "share": share})
            print(cases[-1], flush=True)
    return cases


def table(cases: list[dict[str, Any]]) -> str:
    """The share by the harm."""
    lines = [["change of honest accuracy", "adaptors", "share of the traffic needed, at least"]]
    for low, high in HARMS:
        shares = [case["share"] for case in cases if low < case["change"] <= high]
        if shares:
            known = [1.0 if share is None else share for share in shares]
            text = f"{100 * min(known):.0f} % (median {100 * float(np.median(known)):.0f} %)"
            lines.append([f"{low} to {high} points", str(len(shares)), text])
    return markdown(lines)


if __name__ == "__main__":
    stored = measure()
    OUT.write_text(json.dumps(stored, indent=1) + "\n")
    print(table(stored))

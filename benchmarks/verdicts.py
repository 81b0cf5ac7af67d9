"""How often the verdict adopts a change that helps, and one that harms.

    python benchmarks/verdicts.py --responses DIR

A case is a random change of the unadapted images, or the way back from it, that raises or lowers
the true accuracy by more than one point. The verdict, at level 0.01, sees only the model's
responses. Its measures were chosen on the sets of CHOSEN_ON; OTHERS were not looked at before.
Responses are kept in DIR and only missing ones are queried. Writes results/verdicts.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pages import markdown
from soda_tta import zoo
from soda_tta.adaptors import Bank
from soda_tta.adaptors.parts import moves
from soda_tta.data import Corrupted, load_dataset
from soda_tta.judging.measures import (
    Evidence,
    at_confidence_of,
    consistency_test,
    information_test,
    shared_test,
)
from soda_tta.judging.verdict import judge, moved
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "verdicts.json"
LEVEL = 0.01  # the default of soda-e
POINT = 1.0  # smaller changes of accuracy are neither help nor harm
FREQUENT_CLASSES = (1, 7)  # nine tenths of an unbalanced set
UNBALANCED = ", 90 % from two classes"
RULES = ("shared information", "consistency", "information", "verdict")
MODELS = {  # model, images, random changes
    "cifar10": ("cifar10_resnet20", 500, 16),
    "cifar100": ("cifar100_resnet20", 500, 16),
    "imagenet-1000": ("imagenet_efficientnet_lite0", 300, 8),
}


class ImageSet(NamedTuple):
    """The images of some cases."""

    data: str
    corruption: str
    unbalanced: bool = False

    def __str__(self) -> str:
        return f"{self.data}, {self.corruption}{UNBALANCED if self.unbalanced else ''}"


CHOSEN_ON = [
    ImageSet("cifar10", "clean"),
    ImageSet("cifar10", "brightness"),
    ImageSet("cifar10", "shot_noise"),
    ImageSet("cifar10", "jpeg_compression"),
    ImageSet("cifar10", "frost"),
    ImageSet("cifar10", "motion_blur"),
    ImageSet("cifar10", "clean", unbalanced=True),
    ImageSet("cifar10", "jpeg_compression", unbalanced=True),
    ImageSet("cifar10", "shot_noise", unbalanced=True),
    ImageSet("cifar100", "clean"),
    ImageSet("cifar100", "brightness"),
    ImageSet("cifar100", "shot_noise"),
    ImageSet("cifar100", "jpeg_compression"),
    ImageSet("imagenet-1000", "clean"),
    ImageSet("imagenet-1000", "saturate"),
    ImageSet("imagenet-1000", "shot_noise"),
    ImageSet("imagenet-1000", "motion_blur"),
]
OTHERS = [
    ImageSet("cifar10", "fog"),
    ImageSet("cifar10", "pixelate"),
    ImageSet("cifar10", "gaussian_blur"),
    ImageSet("cifar10", "fog", unbalanced=True),
    ImageSet("cifar10", "contrast", unbalanced=True),
    ImageSet("cifar10", "pixelate", unbalanced=True),
]


def random_changes(count: int, seed: int = 0, without: tuple[str, ...] = ()) -> Array:
    """The identity, then random sums of one to three moves of the bank."""
    generator = np.random.default_rng(seed)
    steps = moves(without)
    changes = [np.zeros(steps.shape[1])]
    for _ in range(count):
        chosen = generator.choice(len(steps), generator.integers(1, 4), replace=False)
        changes.append(steps[chosen].sum(axis=0))
    return np.array(changes)


def image_indices(labels: Array, images: int, unbalanced: bool) -> Array:
    """A random subset, or one with 90 % of its images from two classes."""
    if not unbalanced:
        return np.random.default_rng(3).permutation(len(labels))[:images]
    generator = np.random.default_rng(5)
    frequent = np.isin(labels, FREQUENT_CLASSES)
    many = int(0.9 * images)
    parts = [
        generator.choice(np.flatnonzero(frequent), many, replace=False),
        generator.choice(np.flatnonzero(~frequent), images - many, replace=False),
    ]
    return np.sort(np.concatenate(parts))


def responses_for(image_set: ImageSet, folder: Path) -> dict[str, Array]:
    """Responses to both views of the images through every change (A, B), and accuracies (acc)."""
    suffix = "_unb" if image_set.unbalanced else ""
    path = folder / f"{image_set.data}_{image_set.corruption}{suffix}.npz"
    if not path.exists():
        model, count, changes = MODELS[image_set.data]
        data = load_dataset(image_set.data)
        labels = np.asarray(data.labels)
        indices = image_indices(labels, count, image_set.unbalanced)
        source = data.subset(indices)
        if image_set.corruption != "clean":
            source = Corrupted(source, image_set.corruption, 5, seed=0)
        images = source[slice(0, count)]
        box = zoo.deployed(model, threads=1)
        bank = Bank.for_size(images.shape[1:]).build()
        first = []
        second = []
        for theta in random_changes(changes):
            adapted = bank.candidates(images, theta[None])[0]
            first.append(box(adapted))
            second.append(box(moved(adapted)))
        accuracy = 100 * (np.array(first).argmax(axis=2) == labels[indices]).mean(axis=1)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, A=np.array(first), B=np.array(second), acc=accuracy)
    return dict(np.load(path))


def study(image_set: ImageSet, folder: Path) -> dict[str, Any]:
    """By rule: how many helpful and harmful cases there are, and how many of them it adopts."""
    stored = responses_for(image_set, folder)
    views = list(zip(stored["A"], stored["B"], strict=True))
    accuracy = stored["acc"]
    counts = {
        rule: {kind: {"adopted": 0, "cases": 0} for kind in ("helpful", "harmful")}
        for rule in RULES
    }
    changed = range(1, len(views))
    for old, new in (*((0, each) for each in changed), *((each, 0) for each in changed)):
        change = accuracy[new] - accuracy[old]
        if abs(change) <= POINT:
            continue
        before = views[old]
        after = views[new]
        equal = at_confidence_of(after, before)
        evidence = Evidence(before, after, equal, np.arange(len(before[0])))
        adopted = {
            "shared information": shared_test(evidence).p_value <= LEVEL,
            "consistency": consistency_test(evidence).p_value <= LEVEL,
            "information": information_test(evidence).p_value <= LEVEL,
            "verdict": judge(before, after, LEVEL).adopt,
        }
        kind = "helpful" if change > 0 else "harmful"
        for rule in RULES:
            counts[rule][kind]["adopted"] += int(adopted[rule])
            counts[rule][kind]["cases"] += 1
    return counts


def table() -> str:
    """The stored counts as a Markdown table, summed over the corruptions of each data set."""
    results = json.loads(OUT.read_text())
    groups: dict[str, list[dict[str, Any]]] = {}
    for image_sets, role in ((CHOSEN_ON, "chosen on"), (OTHERS, "others")):
        for image_set in image_sets:
            if str(image_set) in results:
                unbalanced = UNBALANCED if image_set.unbalanced else ""
                name = f"{image_set.data}{unbalanced} ({role})"
                groups.setdefault(name, []).append(results[str(image_set)])
    lines = [["images", "measure", "helpful changes adopted", "harmful changes adopted"]]
    for name, group in groups.items():
        for rule in RULES:
            line = [name, rule]
            for kind in ("helpful", "harmful"):
                adopted = sum(counts[rule][kind]["adopted"] for counts in group)
                cases = sum(counts[rule][kind]["cases"] for counts in group)
                line.append(f"{adopted} of {cases}")
            lines.append(line)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--responses", type=Path, required=True, help="folder for the responses")
    folder = parser.parse_args().responses
    results = {}
    for image_set in (*CHOSEN_ON, *OTHERS):
        results[str(image_set)] = study(image_set, folder)
        print(image_set, results[str(image_set)], flush=True)
    OUT.write_text(json.dumps(results, indent=1) + "\n")
    print(table())


if __name__ == "__main__":
    main()

"""How often the verdict adopts what helps, and what harms: random changes of the images, made and taken back.

    python benchmarks/verdicts.py --answers DIR      # results/verdicts.json; asks again only what DIR does not hold

A case is a change of the images as they are, or the way back from it: the true accuracy of the judged images rises or
falls by more than a point, and the verdict, at level 0.01, sees answers only. The measures were chosen on CHOSEN_ON.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta import zoo
from soda_tta.adaptors import Bank
from soda_tta.adaptors.parts import moves
from soda_tta.data import Corrupted, load_dataset
from soda_tta.judging.verdict import at_confidence_of, gain, judge, moved
from soda_tta.objectives.agreement import matching_information_of_each, shared_information_of_each
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "verdicts.json"
LEVEL, POINT = 0.01, 1.0
FREQUENT = (1, 7)  # the two classes of an unbalanced set
MODELS = {
    "cifar10": ("cifar10_resnet20", 500, 16),  # images, changes
    "cifar100": ("cifar100_resnet20", 500, 16),
    "imagenet-1000": ("imagenet_efficientnet_lite0", 300, 8),
}
CHOSEN_ON = [
    *(
        ("cifar10", c, False)
        for c in ("clean", "brightness", "shot_noise", "jpeg_compression", "frost", "motion_blur")
    ),
    *(("cifar10", c, True) for c in ("clean", "jpeg_compression", "shot_noise")),
    *(("cifar100", c, False) for c in ("clean", "brightness", "shot_noise", "jpeg_compression")),
    *(("imagenet-1000", c, False) for c in ("clean", "saturate", "shot_noise", "motion_blur")),
]
OTHERS = [
    *(("cifar10", c, False) for c in ("fog", "pixelate", "gaussian_blur")),
    *(("cifar10", c, True) for c in ("fog", "contrast", "pixelate")),
]
Case = tuple[str, str, bool]


def changes(count: int) -> Array:
    """None at all, then random sums of one to three moves."""
    generator, steps = np.random.default_rng(0), moves()
    chosen = [
        generator.choice(len(steps), generator.integers(1, 4), replace=False) for _ in range(count)
    ]
    return np.array([np.zeros(steps.shape[1]), *(steps[each].sum(axis=0) for each in chosen)])


def indices_of(labels: Array, images: int, unbalanced: bool) -> Array:
    """A random part, or one with 90 % of its images from two classes."""
    if not unbalanced:
        return np.random.default_rng(3).permutation(len(labels))[:images]
    generator, frequent = np.random.default_rng(5), np.isin(labels, FREQUENT)
    many = int(0.9 * images)
    parts = [(np.flatnonzero(frequent), many), (np.flatnonzero(~frequent), images - many)]
    return np.sort(
        np.concatenate([generator.choice(pool, count, replace=False) for pool, count in parts])
    )


def answers_of(case: Case, folder: Path) -> dict[str, Array]:
    """Both looks at the images through every change, and the accuracies."""
    data, corruption, unbalanced = case
    path = folder / f"{data}_{corruption}{'_unb' * unbalanced}.npz"
    if not path.exists():
        model, count, number = MODELS[data]
        everything = load_dataset(data)
        labels = np.asarray(everything.labels)
        places = indices_of(labels, count, unbalanced)
        subset = everything.subset(places)
        images = (subset if corruption == "clean" else Corrupted(subset, corruption, 5, seed=0))[
            slice(0, count)
        ]
        box, bank = zoo.deployed(model, threads=1), Bank.for_size(images.shape[1:]).build()
        adapted = (bank.candidates(images, theta[None])[0] for theta in changes(number))
        looks = [(box(each), box(moved(each))) for each in adapted]
        first, second = (np.array([pair[index] for pair in looks]) for index in (0, 1))
        accuracy = 100 * (first.argmax(axis=2) == labels[places]).mean(axis=1)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, A=first, B=second, acc=accuracy)
    return dict(np.load(path))


def study(case: Case, folder: Path) -> dict[str, list[int]]:
    """By rule: adopted of those that help, and of those that harm."""
    kept = answers_of(case, folder)
    first, second, accuracy = kept["A"], kept["B"], kept["acc"]
    counts = {rule: [0, 0, 0, 0] for rule in ("shared", "matching", "verdict")}
    changed = range(1, len(first))
    for old, new in (*((0, each) for each in changed), *((each, 0) for each in changed)):
        change = accuracy[new] - accuracy[old]
        if abs(change) <= POINT:
            continue
        before, after = (first[old], second[old]), (first[new], second[new])
        equal = at_confidence_of(after, before)
        adopted = {
            "shared": gain(shared_information_of_each, before, after, equal)[0] <= LEVEL,
            "matching": gain(matching_information_of_each, before, after, equal)[0] <= LEVEL,
            "verdict": judge(before, after, LEVEL).adopt,
        }
        place = 0 if change > 0 else 2
        for rule, yes in adopted.items():
            counts[rule][place] += yes
            counts[rule][place + 1] += 1
    return counts


def groups(found: dict[str, Any]) -> dict[str, list[dict[str, list[int]]]]:
    named: dict[str, list[dict[str, list[int]]]] = {}
    for cases, told in ((CHOSEN_ON, "chosen on"), (OTHERS, "others")):
        for data, corruption, unbalanced in cases:
            key = f"{data} {corruption} {unbalanced}"
            if key in found:
                kind = f"{data}{', two classes 90 %' * unbalanced} ({told})"
                named.setdefault(kind, []).append(found[key])
    return named


def table() -> str:
    from pages import markdown

    lines = [["images", "measure", "adopted of what helps", "adopted of what harms"]]
    for kind, cases in groups(json.loads(OUT.read_text())).items():
        for rule in ("shared", "matching", "verdict"):
            total = np.sum([case[rule] for case in cases], axis=0)
            lines.append([kind, rule, f"{total[0]} of {total[1]}", f"{total[2]} of {total[3]}"])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--answers", type=Path, required=True, help="folder in which answers are kept"
    )
    folder = parser.parse_args().answers
    found = {}
    for case in (*CHOSEN_ON, *OTHERS):
        key = f"{case[0]} {case[1]} {case[2]}"
        found[key] = study(case, folder)
        print(key, found[key], flush=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    print(table())


if __name__ == "__main__":
    main()

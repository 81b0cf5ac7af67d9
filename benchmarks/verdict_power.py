"""Where the verdict loses gains: against labels, without its conditions, and with softer responses.

    python benchmarks/verdict_power.py --responses DIR

A case is a change of the unadapted images, or the way back from it (`verdict_responses.py`), that
raises or lowers the true accuracy by more than one point. Everything is decided at level 0.01 from
the 750 judged ones of 1,000 images (300 of 400 for 1,000 classes):

- labels: what the true classes of the same images would decide, by an exact paired test;
- information alone: the strongest measure of the verdict, without its two conditions;
- softened: responses tempered until the mean entropy is half of the largest possible, then tested.

The softened rules were developed on the sets of DEVELOPED_ON and on none of OTHERS.
Nine tenths of two classes are also made from each set of ten classes by leaving images out; there
a case counts if labels show the change (1.3 standard errors). Responses are kept in DIR and only
missing ones are queried; results that are in results/verdict_power.json are not repeated.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from pages import markdown
from soda_tta.judging.measures import Views, information_of_views, one_sided_p_value
from soda_tta.judging.verdict import judge
from soda_tta.objectives.equations import entropy
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array
from verdict_responses import ImageSet, responses

OUT = Path(__file__).parents[1] / "results" / "verdict_power.json"
LEVEL = 0.01  # the default of soda-e
POINT = 1.0  # smaller changes of accuracy are neither help nor harm
CLEAR = 1.3  # standard errors of a change of accuracy on the few images of two classes
PAIRS = 6  # of frequent classes
SOFTNESS = 0.5  # mean entropy of softened responses, as a share of the largest possible
LEAST_LIKELY = 1e-12  # a zero of a model that rounds its responses is not impossible
FLIPS = 10  # exchanges of before and after, image by image at random: nothing helps on average
RULES = ("labels", "information alone", "softened information alone", "softened verdict", "verdict")
KINDS = ("helpful", "harmful")


def small(model: str, corruption: str, severity: int = 5, unbalanced: bool = False) -> ImageSet:
    """A set of 32 px."""
    return ImageSet(model.split("_")[0], model, corruption, severity, unbalanced)


def large(data: str, corruption: str, severity: int) -> ImageSet:
    """A set of 224 px and 1,000 classes."""
    return ImageSet(data, "imagenet_efficientnet_lite0", corruption, severity)


DEVELOPED_ON = [
    small("cifar10_resnet20", "clean"),
    small("cifar10_resnet20", "brightness"),
    small("cifar10_resnet20", "jpeg_compression"),
    small("cifar10_resnet20", "elastic_transform"),
    small("cifar10_resnet20", "shot_noise", unbalanced=True),
    small("cifar100_resnet20", "jpeg_compression"),
    large("imagenet-1000", "brightness", 4),
]
OTHERS = [
    small("cifar10_resnet32", "spatter"),
    small("cifar10_resnet32", "saturate"),
    small("cifar10_resnet32", "fog", 4, unbalanced=True),
    small("cifar100_resnet32", "fog"),
    large("imagenet-val-2000", "fog", 3),
]


def softened(before: Views, after: Views) -> tuple[Views, Views]:
    """All responses, tempered by the exponent that makes those of `before` soft enough."""
    goal = SOFTNESS * np.log(before[0].shape[1])
    exact = [np.asarray(rows, np.float64) + LEAST_LIKELY for rows in (*before, *after)]
    low = -3.0  # logarithms of the exponent
    high = 0.0  # responses are never made more confident
    for _ in range(25):
        middle = (low + high) / 2
        if np.mean([entropy(tempered(rows, np.exp(middle))).mean() for rows in exact[:2]]) > goal:
            low = middle
        else:
            high = middle
    first, second, third, fourth = (tempered(rows, np.exp(high)) for rows in exact)
    return (first, second), (third, fourth)


def by_labels(correct_before: Array, correct_after: Array) -> float:
    """The exact one-sided p-value of newly right images against newly wrong ones."""
    right = int((correct_after & ~correct_before).sum())
    wrong = int((correct_before & ~correct_after).sum())
    if not right:
        return 1.0
    return float(stats.binomtest(right, right + wrong, alternative="greater").pvalue)


def information_alone(before: Views, after: Views) -> float:
    """The p-value of the gain in information, without further conditions."""
    return one_sided_p_value(information_of_views(after) - information_of_views(before))


def p_values(before: Views, after: Views, correct: Array) -> dict[str, float]:
    """What each rule says about one case."""
    soft = softened(before, after)
    return {
        "labels": by_labels(*correct),
        "information alone": information_alone(before, after),
        "softened information alone": information_alone(*soft),
        "softened verdict": judge(*soft, LEVEL).p_value,
        "verdict": judge(before, after, LEVEL).p_value,
    }


class Counts:
    """By rule and kind: cases, and how many of them are adopted."""

    def __init__(self) -> None:
        self.adopted = {rule: dict.fromkeys(KINDS, 0) for rule in RULES}
        self.cases = dict.fromkeys(KINDS, 0)

    def add(self, change: float, found: dict[str, float]) -> None:
        """One case with its change of accuracy."""
        kind = "helpful" if change > 0 else "harmful"
        self.cases[kind] += 1
        for rule in RULES:
            self.adopted[rule][kind] += int(found[rule] <= LEVEL)

    def facts(self) -> dict[str, Any]:
        return {"adopted": self.adopted, "cases": self.cases}


def both_ways(changes: int) -> list[tuple[int, int]]:
    """From the unadapted images to each change, and back."""
    return [pair for new in range(1, changes) for pair in ((0, new), (new, 0))]


def study(image_set: ImageSet, folder: Path) -> dict[str, Any]:
    """The counts of one set, and of sets of two frequent classes made from it."""
    stored = responses(image_set, folder)
    rows, correct = stored["views"], stored["correct"]
    counts = Counts()
    for old, new in both_ways(len(rows)):
        change = stored["accuracy"][new] - stored["accuracy"][old]
        if abs(change) > POINT:
            found = p_values(views(rows[old]), views(rows[new]), correct[[old, new]])
            counts.add(change, found)
    result = {"group": image_set.group, **counts.facts(), "exchanged": exchanged(rows)}
    if image_set.data == "cifar10" and not image_set.unbalanced:
        result["two classes"] = two_classes(rows, correct, stored["labels"]).facts()
    return result


def views(rows: Array) -> Views:
    """The image and the image shifted."""
    return rows[0], rows[1]


def two_classes(rows: Array, correct: Array, labels: Array) -> Counts:
    """Nine tenths of two classes, several times, by leaving images out."""
    random = np.random.default_rng(1)
    pairs = list(combinations(range(10), 2))
    random.shuffle(pairs)
    counts = Counts()
    for pair in pairs[:PAIRS]:
        frequent = np.flatnonzero(np.isin(labels, pair))
        others = np.flatnonzero(~np.isin(labels, pair))
        chosen = random.choice(others, len(frequent) // 9, replace=False)
        places = np.concatenate([frequent, chosen])
        for old, new in both_ways(len(rows)):
            gains = correct[new, places].astype(float) - correct[old, places]
            change = 100 * gains.mean()
            error = gains.std() / np.sqrt(len(places))
            if abs(change) <= POINT or abs(gains.mean()) < CLEAR * error:
                continue
            found = p_values(
                views(rows[old][:, places]),
                views(rows[new][:, places]),
                correct[[old, new]][:, places],
            )
            counts.add(change, found)
    return counts


def exchanged(rows: Array) -> dict[str, int]:
    """How often sides are adopted that were exchanged at random, image by image."""
    random = np.random.default_rng(0)
    adopted = {"verdict": 0, "softened verdict": 0}
    for _ in range(FLIPS):
        other = rows[random.integers(1, len(rows))]
        mask = (random.random(rows.shape[2]) < 0.5)[:, None]
        before = views(np.where(mask, other, rows[0]))
        after = views(np.where(mask, rows[0], other))
        adopted["verdict"] += int(judge(before, after, LEVEL).adopt)
        adopted["softened verdict"] += int(judge(*softened(before, after), LEVEL).adopt)
    return {**adopted, "cases": FLIPS}


def table() -> str:
    """The stored counts as a Markdown table, summed over the shifts of each model."""
    results = json.loads(OUT.read_text())
    groups: dict[str, list[dict[str, Any]]] = {}
    for image_sets, role in ((DEVELOPED_ON, "developed on"), (OTHERS, "others")):
        for image_set in image_sets:
            result = results.get(str(image_set))
            if result is None:
                continue
            groups.setdefault(f"{result['group']} ({role})", []).append(result)
            if "two classes" in result:
                name = f"{result['group']}, images left out until 90 % are from two classes"
                groups.setdefault(f"{name} ({role})", []).append(result["two classes"])
    lines = [["images", "decided by", *(f"{kind} changes adopted" for kind in KINDS)]]
    for name, group in groups.items():
        for rule in RULES:
            line = [name, rule]
            for kind in KINDS:
                adopted = sum(each["adopted"][rule][kind] for each in group)
                line.append(f"{adopted} of {sum(each['cases'][kind] for each in group)}")
            lines.append(line)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--responses", type=Path, help="folder for the responses")
    parser.add_argument("--stored", action="store_true", help="only sets with stored responses")
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    options = parser.parse_args()
    if options.responses is None and not options.table:
        parser.error("--responses DIR is needed")
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for image_set in () if options.table else (*DEVELOPED_ON, *OTHERS):
        unavailable = options.stored and not (options.responses / image_set.file).exists()
        if str(image_set) in results or unavailable:
            continue
        results[str(image_set)] = study(image_set, options.responses)
        print(image_set, results[str(image_set)], flush=True)
        OUT.write_text(json.dumps(results, indent=1) + "\n")
    print(table())


if __name__ == "__main__":
    main()

"""What do a stated class prior and further views bring, what does a wrong prior cost, who warns?

    python benchmarks/prior_views.py run       # hours at idle priority; run again to resume
    python benchmarks/prior_views.py page      # update the tables of the page
    python benchmarks/prior_views.py page --check

2,000 images per corruption, severity 5, at most 10 queries per image. One run of soda-e gives what
is measured for a corruption: its responses and those to further views, from which each kind of
answer is made by the functions that a run uses (tests/methods/test_economy_answers.py shows that
they are the answers of a run). The strength of the pull (3 images), the limits of the warning, one
set of weights for all conditions and the verdict on unweighted responses were chosen on the
development corruptions; the others are reported beside them. Labels only measure.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pages import replace_tables
from soda_tta import adapt, zoo
from soda_tta.adaptors.answering import VIEWS, weighted
from soda_tta.box import Box
from soda_tta.data import Corrupted, Dataset, load_dataset, open_images
from soda_tta.data.corruption_names import CORRUPTIONS
from soda_tta.judging.prior_check import contradiction
from soda_tta.judging.verdict import judge
from soda_tta.objectives import agreement_of_each, class_weights
from soda_tta.types import Array

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "research" / "prior-views.md"
OUT = ROOT / "results" / "prior_views.json"
MODELS = {
    "cifar10_resnet20": "cifar10",
    "cifar10_resnet32": "cifar10",
    "cifar100_resnet20": "cifar100",
}
DEVELOPMENT = (
    *("shot_noise", "motion_blur", "frost", "contrast"),
    *("jpeg_compression", "brightness"),
)
CLEAN = "clean"
IMAGES = 2000
BUDGET = 10  # queries per image
SEVERITY = 5
KINDS = ("plain", "prior", "mirror", "shift", "three views", "prior and mirror")
SKEWED_MODEL = "cifar10_resnet32"  # nothing was chosen on it
SKEWED = ("clean", "gaussian_noise", "contrast", "jpeg_compression", "fog")
FREQUENT_CLASSES = (3, 8)  # cats and ships, as in transports.py
SKEWED_IMAGES = 1000
SKEWED_BUDGET = 15
DRAWS = 4  # of class shares for the warning
DRAWN_IMAGES = 500
VERDICT_IMAGES = (150, 400, 1000)
LEVEL = 0.01
MIXED = ("gaussian_noise", "defocus_blur", "contrast", "clean")  # a quarter of the images each
MIXED_IMAGES = 500  # of each


def source_of(data: Dataset, corruption: str) -> Dataset:
    """Images with one corruption, or as they are."""
    if corruption == CLEAN:
        return data
    return Corrupted(data, corruption, SEVERITY, seed=0)


def asked(box: Box, images: Array) -> Array:
    """Responses, 500 images at a time."""
    return np.concatenate([box(images[at : at + 500]) for at in range(0, len(images), 500)])


def balanced(classes: int) -> Array:
    """All classes equally frequent."""
    return np.full(classes, 1 / classes)


def matched(rows: Array, prior: Array) -> Array:
    """Answers as a run with this prior gives them."""
    return weighted(rows, class_weights(rows, prior))


def accuracy(rows: Array, labels: Array) -> float:
    """In percent."""
    return 100 * float((rows.argmax(axis=1) == labels).mean())


# -- one corruption: every kind of answer, the verdict, the warning -----------------------------


def measured(model: str, corruption: str) -> dict[str, Any]:
    """What is stored about one corruption in front of one model."""
    data = load_dataset(MODELS[model]).subset(slice(0, IMAGES))
    box = zoo.deployed(model, threads=1)
    source = source_of(data, corruption)
    run = adapt(source, box, budget=BUDGET)
    adopted = run.verdict is not None and run.verdict.adopt
    images = open_images(source)[:]
    adapted = run.adaptor(images)
    deployed = responses(box, images, run.before)
    answers = responses(box, adapted, run.probabilities)
    labels = np.asarray(data.labels)
    facts = {
        "adopted": adopted,
        "queries_per_image": run.queries_per_image,
        "unadapted": kinds(deployed, labels),
        "soda-e": kinds(answers, labels),
        "agreement": {name: agreement(answers, name) for name in VIEWS},
        "warning": warned(answers["plain"], labels),
    }
    if run.candidate is not None:  # not judged condition by condition
        found = run.candidate.adaptor(images)
        facts["verdicts"] = verdicts(deployed, responses(box, found), labels)
    return facts


def responses(box: Box, images: Array, plain: Array | None = None) -> dict[str, Array]:
    """Responses to each view."""
    named = {"plain": asked(box, images) if plain is None else plain}
    return {**named, **{name: asked(box, make(images)) for name, make in VIEWS.items()}}


def kinds(rows: dict[str, Array], labels: Array) -> dict[str, float]:
    """The accuracy of each kind of answer."""
    prior = balanced(rows["plain"].shape[1])
    mirror = (rows["plain"] + rows["mirror"]) / 2
    answers = {
        "plain": rows["plain"],
        "prior": matched(rows["plain"], prior),
        "mirror": mirror,
        "shift": (rows["plain"] + rows["shift"]) / 2,
        "three views": (rows["plain"] + rows["mirror"] + rows["shift"]) / 3,
        "prior and mirror": matched(mirror, prior),
    }
    return {name: accuracy(answers[name], labels) for name in KINDS}


def agreement(rows: dict[str, Array], view: str) -> float:
    """How often answers to a view agree with those to the image."""
    return float(agreement_of_each(rows["plain"], rows[view]).mean())


def warned(rows: Array, labels: Array) -> dict[str, list[Any]]:
    """Whether there is a warning, and what the prior changes: stated truly, and balanced.

    The shares of the classes are drawn at random, and images accordingly.
    """
    classes = rows.shape[1]
    random = np.random.default_rng(0)
    cases: dict[str, list[Any]] = {"true": [], "wrong": [], "balanced, true": []}
    for _ in range(DRAWS):
        even = random.choice(len(labels), DRAWN_IMAGES, replace=False)
        cases["balanced, true"].append(case(rows[even], labels[even], balanced(classes)))
        shares = random.dirichlet(np.ones(classes))
        chosen = drawn(labels, shares, random)
        cases["true"].append(case(rows[chosen], labels[chosen], shares))
        cases["wrong"].append(case(rows[chosen], labels[chosen], balanced(classes)))
    return cases


def case(rows: Array, labels: Array, prior: Array) -> list[Any]:
    """Whether there is a warning, and the change of the accuracy."""
    change = accuracy(matched(rows, prior), labels) - accuracy(rows, labels)
    return [contradiction(rows, prior) is not None, round(change, 2)]


def drawn(labels: Array, shares: Array, random: np.random.Generator) -> Array:
    """As many images as there are with these class shares, at most `DRAWN_IMAGES`."""
    available = np.bincount(labels, minlength=len(shares))
    count = min(DRAWN_IMAGES, int((available / np.maximum(shares, 1e-9)).min()))
    counts = np.floor(shares * count).astype(int)
    parts = [
        random.choice(np.flatnonzero(labels == name), number, replace=False)
        for name, number in enumerate(counts)
    ]
    return np.concatenate(parts)


def verdicts(before: dict[str, Array], after: dict[str, Array], labels: Array) -> list[Any]:
    """By number of images: the gain, and what is adopted without and with weights in both arms.

    Each change is judged in both directions, so that there are as many harms as gains.
    """
    prior = balanced(before["plain"].shape[1])
    gain = accuracy(matched(after["plain"], prior), labels)
    gain -= accuracy(matched(before["plain"], prior), labels)
    random = np.random.default_rng(0)
    cases = []
    for count in VERDICT_IMAGES:
        chosen = random.choice(len(labels), count, replace=False)
        arms = [(rows["plain"][chosen], rows["shift"][chosen]) for rows in (before, after)]
        weights = [class_weights(np.concatenate(arm), prior) for arm in arms]
        reweighted = [
            tuple(weighted(rows, own) for rows in arm)
            for arm, own in zip(arms, weights, strict=True)
        ]
        for first, second, sign in ((0, 1, 1), (1, 0, -1)):
            plain = judge(arms[first], arms[second], LEVEL, prior=prior).adopt
            equal = judge(reweighted[first], reweighted[second], LEVEL, prior=prior).adopt
            cases.append([count, round(sign * gain, 2), plain, equal])
    return cases


# -- images of which nine in ten are of two classes ----------------------------------------------


def skewed(corruption: str) -> dict[str, Any]:
    """Runs without a prior, with the true one, and with two wrong ones."""
    data = load_dataset("cifar10")
    labels = np.asarray(data.labels)
    frequent = np.isin(labels, FREQUENT_CLASSES)
    many = np.flatnonzero(frequent)[: SKEWED_IMAGES * 9 // 10]
    few = np.flatnonzero(~frequent)[: SKEWED_IMAGES // 10]
    chosen = data.subset(np.sort(np.concatenate([many, few])))
    own = np.asarray(chosen.labels)
    true = np.full(10, 0.1 / 8)
    true[list(FREQUENT_CLASSES)] = 0.45
    stated = {
        "unknown": "unknown",
        "true": true,
        "balanced": "balanced",
        "others": np.roll(true, 1),
    }
    box = zoo.deployed(SKEWED_MODEL, threads=1)
    facts: dict[str, Any] = {}
    for name, prior in stated.items():
        run = adapt(source_of(chosen, corruption), box, budget=SKEWED_BUDGET, prior=prior)
        facts["unadapted"] = accuracy(run.before, own)
        facts[name] = {
            "after": accuracy(run.probabilities, own),
            "adopted": run.verdict is not None and run.verdict.adopt,
            "warned": any("prior does not fit" in text for text in run.notices),
        }
    return facts


# -- one set of weights, or one for each condition -----------------------------------------------


def mixed(dependent: bool) -> dict[str, float]:
    """Accuracy with one set of weights for all images, and with one for each condition.

    Over all images the classes are balanced. If they depend on the condition, two conditions have
    the first five classes and the others the last five.
    """
    data = load_dataset("cifar10")
    labels = np.asarray(data.labels)
    box = zoo.deployed(SKEWED_MODEL, threads=1)
    parts, truth = [], []
    for number, corruption in enumerate(MIXED):
        own = np.arange(number * 2000, (number + 1) * 2000)
        if dependent:
            own = own[(labels[own] < 5) == bool(number % 2)]
        chosen = data.subset(own[:MIXED_IMAGES])
        parts.append(open_images(source_of(chosen, corruption))[:])
        truth.append(np.asarray(chosen.labels))
    run = adapt(np.concatenate(parts), box, budget=12)
    rows = run.probabilities
    true = np.concatenate(truth)
    prior = balanced(10)
    each = rows.astype(np.float64)
    conditions = np.zeros(len(rows), int)
    if run.conditions is not None:
        conditions = run.conditions.routes.conditions
    for number in np.unique(conditions):
        each[conditions == number] = matched(rows[conditions == number], prior)
    return {
        "conditions": len(np.unique(conditions)),
        "plain": accuracy(rows, true),
        "one set": accuracy(matched(rows, prior), true),
        "one each": accuracy(each, true),
    }


# -- what is run, and the page -------------------------------------------------------------------


def cells() -> Iterator[tuple[str, Any]]:
    """Everything that is measured: a name, and a function."""
    for corruption in SKEWED:
        yield f"skewed/{corruption}", lambda c=corruption: skewed(c)
    for dependent in (False, True):
        yield f"mixed/{dependent}", lambda d=dependent: mixed(d)
    for model in MODELS:
        for corruption in (*DEVELOPMENT, *held_out()):
            yield f"{model}/{corruption}", lambda m=model, c=corruption: measured(m, c)


def held_out() -> tuple[str, ...]:
    """Corruptions that nothing was chosen on, and clean images."""
    return (*(name for name in CORRUPTIONS if name not in DEVELOPMENT), CLEAN)


def run_all() -> None:
    """Run what is not stored yet."""
    warnings.simplefilter("ignore")
    stored = read()
    for name, work in cells():
        if name in stored:
            continue
        stored[name] = work()
        OUT.write_text(json.dumps(stored, indent=1) + "\n")
        print(name, json.dumps(stored[name])[:300], flush=True)


def read() -> dict[str, Any]:
    """The stored results."""
    return json.loads(OUT.read_text()) if OUT.exists() else {}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "page"])
    parser.add_argument("--check", action="store_true", help="with page: fail if out of date")
    options = parser.parse_args()
    if options.command == "run":
        run_all()
        return
    import prior_views_tables

    page = PAGE.read_text()
    fresh = replace_tables(page, prior_views_tables.tables(read()))
    if not options.check:
        PAGE.write_text(fresh)
    elif fresh != page:
        sys.exit(
            "docs/research/prior-views.md is out of date: python benchmarks/prior_views.py page"
        )


if __name__ == "__main__":
    main()

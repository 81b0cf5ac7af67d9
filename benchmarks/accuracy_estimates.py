"""How well can accuracy be estimated without labels, before and after adapting? And is the doctor right, and quick?

    SODA_TTA_DATA=... python benchmarks/accuracy_estimates.py --out results/accuracy_estimates.json
    SODA_TTA_DATA=... python benchmarks/accuracy_estimates.py --after soda-e --budget 30      # any method

Estimators are chosen by their error on six corruptions; what is reported is their error on the other thirteen, and
on a model that took no part in choosing. Labels are used here only to measure, and where a column says so.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from scipy.optimize import minimize_scalar

from soda_tta import adapt, zoo
from soda_tta._version import __version__
from soda_tta.box import Cached
from soda_tta.data import Corrupted, load_dataset
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.doctor import examine
from soda_tta.doctor.trial import RESTORATIONS
from soda_tta.engine.run import versions
from soda_tta.judging.estimate import (
    ONE_VIEW,
    balanced_agreement,
    balanced_classes,
    check_rows,
    estimate_accuracy,
    half_width,
)
from soda_tta.objectives.equations import mutual_information
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

# one of each family: noise, blur, weather and three of the digital kind
CHOSEN_ON = ("gaussian_noise", "defocus_blur", "fog", "contrast", "jpeg_compression", "pixelate")
SEVERITIES = (1, 3, 5)
SETS = (("cifar10", "cifar10_resnet20"), ("cifar100", "cifar100_resnet20"))
UNSEEN = ("cifar10", "cifar10_resnet32")  # takes no part in choosing
UNSEEN_SEVERITIES = (3,)  # and is asked less
CLEAN_FROM = 5000  # clean images are others than the corrupted ones

SHIPPED = (
    "mean confidence",
    "balanced agreement, T=1.25",
    "balanced agreement, scaled",
    "balanced agreement of two looks",
)
CELL = ("data", "model", "corruption", "severity", "moment")


class Answers:
    """What a model said of the looks of a set; kept in a file, if there is a folder for it, and not asked again."""

    def __init__(self, box: Any, path: Path | None) -> None:
        self.box, self.path = box, path
        self.rows: dict[str, Array] = {}
        if path is not None and path.exists():
            with np.load(path) as stored:
                self.rows = dict(stored)

    def __call__(self, name: str, images: Callable[[], Array]) -> Array:
        if name not in self.rows:
            self.rows[name] = self.box(images())
        return check_rows(self.rows[name])

    def keep(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self.path, **self.rows)


@dataclass
class Situation:
    """What an estimator may look at, asked when it does. Clean labels are for those that say they need them."""

    name: str
    make: Callable[[], Array]
    ask: Answers
    clean: Array
    clean_labels: Array

    @cached_property
    def images(self) -> Array:
        return self.make()

    @cached_property
    def answers(self) -> Array:
        return self.ask(f"{self.name}-answers", lambda: self.images)

    @cached_property
    def flipped(self) -> Array:
        return self.ask(
            f"{self.name}-flipped", lambda: np.ascontiguousarray(self.images[..., ::-1])
        )

    @cached_property
    def assigned(self) -> Array:
        return balanced_classes(self.answers)

    @property
    def clean_accuracy(self) -> float:
        return float((self.clean.argmax(axis=1) == self.clean_labels).mean())


def mean_confidence(given: Situation) -> float:
    return float(given.answers.max(axis=1).mean())


def scaled_confidence(given: Situation) -> float:
    """The temperature that makes the clean labels most likely."""
    rows = np.arange(len(given.clean))

    def surprise(logarithm: float) -> float:
        scaled = tempered(given.clean, 1 / float(np.exp(logarithm)))
        return float(-np.log(scaled[rows, given.clean_labels] + 1e-12).mean())

    best = minimize_scalar(surprise, bounds=(np.log(0.3), np.log(10)), method="bounded").x
    return float(tempered(given.answers, 1 / float(np.exp(best))).max(axis=1).mean())


def difference_of_confidences(given: Situation) -> float:
    return given.clean_accuracy - float(given.clean.max(axis=1).mean()) + mean_confidence(given)


def thresholded_confidence(given: Situation) -> float:
    """Above the threshold that as many clean answers pass as are right."""
    threshold = np.quantile(given.clean.max(axis=1), 1 - given.clean_accuracy)
    return float((given.answers.max(axis=1) >= threshold).mean())


def agreement(given: Situation) -> float:
    """Of the answers to the image and to its mirror image."""
    return float(np.mean(given.answers.argmax(axis=1) == given.flipped.argmax(axis=1)))


def information(given: Situation) -> float:
    return mutual_information(given.answers) / float(np.log(given.answers.shape[1]))


def nuclear_norm(given: Situation) -> float:
    count, classes = given.answers.shape
    return float(np.linalg.norm(given.answers, "nuc") / np.sqrt(count * min(count, classes)))


def transport(given: Situation) -> float:
    """Mean probability of the balanced assignment (confidence optimal transport)."""
    return float(given.answers[np.arange(len(given.assigned)), given.assigned].mean())


def balanced(temperature: float) -> Callable[[Situation], float]:
    return lambda given: balanced_agreement(given.answers, given.assigned, temperature)


def scaled_agreement(given: Situation) -> float:
    return estimate_accuracy(
        given.answers, clean=given.clean, clean_accuracy=given.clean_accuracy
    ).accuracy


def two_looks(given: Situation) -> float:
    return estimate_accuracy(given.answers, flipped=given.flipped).accuracy


# name: what it needs beside the answers, queries an image, whether a line is fitted on the six, how
ESTIMATORS: dict[str, tuple[str, int, bool, Callable[[Situation], float]]] = {
    "mean confidence": ("nothing", 1, False, mean_confidence),
    "temperature-scaled confidence": ("clean labels", 1, False, scaled_confidence),
    "difference of confidences": ("clean labels", 1, False, difference_of_confidences),
    "average thresholded confidence": ("clean labels", 1, False, thresholded_confidence),
    "agreement under flip": ("nothing", 2, False, agreement),
    "mutual information, line fitted": ("balance, the six's labels", 1, True, information),
    "nuclear norm, line fitted": ("balance, the six's labels", 1, True, nuclear_norm),
    "confidence optimal transport": ("balance", 1, False, transport),
    "balanced agreement, T=1": ("balance", 1, False, balanced(1.0)),
    "balanced agreement, T=1.25": ("balance", 1, False, balanced(1.25)),
    "balanced agreement, T=1.5": ("balance", 1, False, balanced(1.5)),
    "balanced agreement, T=2": ("balance", 1, False, balanced(2.0)),
    "balanced agreement, scaled": ("balance, the clean accuracy", 1, False, scaled_agreement),
    "balanced agreement of two looks": ("balance", 2, False, two_looks),
}


def half_median(images: Array) -> Array:
    """A plain restoration, standing in for an adaptor: half the image, half its 3x3 median."""
    mixed: Array = 0.5 * images + 0.5 * ndimage.median_filter(images, size=(1, 1, 3, 3))
    return mixed


def situations(data: str, model: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every corruption and severity of a set, before and after adapting, with every estimate and the truth."""
    everything, box = load_dataset(data), zoo.deployed(model, threads=1)
    images = everything.subset(slice(0, options.images))
    reference = everything.subset(slice(CLEAN_FROM, CLEAN_FROM + options.images))
    file = f"{data}-{model}-{options.images}-{options.after}-{options.budget}.npz"
    ask = Answers(box, options.answers / file if options.answers else None)
    clean = ask("clean", lambda: reference[slice(None)])
    cells = []
    for corruption, severity in product(
        options.corruptions, SEVERITIES if model != UNSEEN[1] else UNSEEN_SEVERITIES
    ):
        shifted = Corrupted(images, corruption, severity, seed=0)
        makers = {
            "before": partial(shifted.__getitem__, slice(None)),
            "after": partial(adapted, shifted, box, options),
        }
        for moment, make in makers.items():
            given = Situation(
                f"{corruption}-{severity}-{moment}", make, ask, clean, reference.labels
            )
            names = dict(zip(CELL, (data, model, corruption, severity, moment), strict=True))
            accuracy = float((given.answers.argmax(axis=1) == images.labels).mean())
            estimates = {name: estimate(given) for name, (_, _, _, estimate) in ESTIMATORS.items()}
            cells.append({**names, "images": len(images), "accuracy": accuracy, **estimates})
        ask.keep()
        print(f"  {data} {model} {corruption} {severity}", flush=True)
    return cells


def adapted(shifted: Any, box: Any, options: argparse.Namespace) -> Array:
    if options.after == "half-median":
        return half_median(shifted[slice(None)])
    run = adapt(shifted, box, options.after, options.budget, listener=lambda event: None)
    return run.adaptor(shifted[slice(None)])


def fit_lines(cells: list[dict[str, Any]]) -> None:
    """The statistics that are no accuracy become one by a line through the six, before adapting, of their own set."""
    for name, (_, _, fitted, _) in ESTIMATORS.items():
        for data, model in {(cell["data"], cell["model"]) for cell in cells} if fitted else ():
            own = [cell for cell in cells if (cell["data"], cell["model"]) == (data, model)]
            six = [
                cell
                for cell in own
                if cell["corruption"] in CHOSEN_ON and cell["moment"] == "before"
            ]
            slope, constant = np.polyfit([c[name] for c in six], [c["accuracy"] for c in six], 1)
            for cell in own:
                cell[name] = float(slope * cell[name] + constant)


def errors(cells: list[dict[str, Any]], name: str, **wanted: Any) -> Array:
    chosen = wanted.pop("chosen", None)
    kept = [
        cell
        for cell in cells
        if all(cell[key] == value for key, value in wanted.items())
        and (chosen is None or (cell["corruption"] in CHOSEN_ON) == chosen)
    ]
    return np.array([cell[name] - cell["accuracy"] for cell in kept])


def table(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row an estimator: its error on the six it may be chosen by, and on what it was not."""
    rows = []
    models = {model for _, model in SETS}
    seen = [cell for cell in cells if cell["model"] in models]
    for name, (needs, queries, _, _) in ESTIMATORS.items():
        held_out = errors(seen, name, chosen=False)
        row: dict[str, Any] = {"estimator": name, "needs": needs, "queries": queries}
        row["six"] = float(np.abs(errors(seen, name, chosen=True)).mean())
        row["six, cifar10 only"] = float(
            np.abs(errors(seen, name, chosen=True, model=SETS[0][1])).mean()
        )
        for _, model in (*SETS, UNSEEN):
            for moment in ("before", "after"):
                found = errors(
                    cells,
                    name,
                    model=model,
                    moment=moment,
                    chosen=None if model == UNSEEN[1] else False,
                )
                if len(found):
                    row[f"{model} {moment}"] = float(np.abs(found).mean())
        row.update(
            held_out=float(np.abs(held_out).mean()),
            margin=float(np.quantile(np.abs(held_out), 0.9)),
            worst=float(np.abs(held_out).max()),
        )
        rows.append(row)
    return rows


def coverage(cells: list[dict[str, Any]]) -> dict[str, float]:
    """In which share of the cells that took no part in choosing the package's interval holds the truth."""
    found: dict[str, list[bool]] = {}
    for cell in cells:
        guess = cell["balanced agreement, T=1.25"]
        if cell["model"] == UNSEEN[1] or cell["corruption"] not in CHOSEN_ON:
            inside = abs(guess - cell["accuracy"]) <= half_width(guess, cell["images"], ONE_VIEW)
            found.setdefault(cell["model"], []).append(inside)
    return {model: round(float(np.mean(inside)), 3) for model, inside in found.items()}


def imbalance(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What happens when the classes are not equally frequent, which the estimate takes for granted."""
    data, model = SETS[0]
    everything, box = load_dataset(data), zoo.deployed(model, threads=1)
    rows = []
    for ratio in (1, 2, 5, 10):
        found: dict[str, list[float]] = {"unaware": [], "shares given": []}
        for corruption in CHOSEN_ON:
            generator = np.random.default_rng(0)
            rare = everything.labels[:3000] >= 5  # every second class
            kept = np.flatnonzero(~rare | (generator.random(3000) < 1 / ratio))[: options.images]
            images = everything.subset(kept)
            answers = box(Corrupted(images, corruption, 3, seed=0)[slice(None)])
            truth = float((answers.argmax(axis=1) == images.labels).mean())
            shares = np.bincount(images.labels, minlength=answers.shape[1])
            found["unaware"].append(abs(estimate_accuracy(answers).accuracy - truth))
            found["shares given"].append(
                abs(estimate_accuracy(answers, shares=shares).accuracy - truth)
            )
        rows.append(
            {"ratio": ratio, **{name: float(np.mean(values)) for name, values in found.items()}}
        )
    return rows


def doctor(data: str, model: str, options: argparse.Namespace) -> dict[str, Any]:
    """The doctor's advice on every corruption, against what the restoration it thinks best really brings."""
    everything, box = load_dataset(data), zoo.deployed(model, threads=1)
    images = everything.subset(slice(0, 500))
    reference = everything.subset(slice(CLEAN_FROM, CLEAN_FROM + 500))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        queries = examine(images, box).queries
        seconds.append(round(time.perf_counter() - began, 2))
    remembering = Cached(
        box
    )  # the same questions are asked with and without clean images, and to measure
    cells = []
    for corruption in ("clean", *options.corruptions):
        for severity in (1,) if corruption == "clean" else SEVERITIES:
            shown = (
                images if corruption == "clean" else Corrupted(images, corruption, severity, seed=0)
            )
            pixels = shown[slice(None)]
            found, informed = (
                examine(pixels, remembering),
                examine(pixels, remembering, clean=reference),
            )
            best = found["trial"].settings["best"]
            restored = remembering(np.clip(RESTORATIONS[best](pixels), 0, 1).astype(np.float32))
            right, better = (
                float((rows.argmax(axis=1) == images.labels).mean())
                for rows in (remembering(pixels), restored)
            )
            cells.append(
                {
                    "corruption": corruption,
                    "severity": severity,
                    "advice": found.advice,
                    "advice with clean": informed.advice,
                    "p value": informed["shift"].settings["p_value"]
                    if "shift" in informed
                    else None,
                    "accuracy": right,
                    "estimate": found.estimate.accuracy if found.estimate else None,
                    "restoration": best,
                    "gain": better - right,
                }
            )
        print(f"  doctor {model} {corruption}", flush=True)
    return {"seconds": seconds, "queries": queries, "cells": cells}


def print_table(rows: list[dict[str, Any]]) -> None:
    columns = [key for key in rows[0] if key not in ("estimator", "needs", "queries")]
    print("| estimator | needs | queries | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 3) + "|")
    for row in rows:
        settings = " | ".join(
            f"{100 * row[column]:.1f}" if column in row else "-" for column in columns
        )
        print(f"| {row['estimator']} | {row['needs']} | {row['queries']} | {settings} |")


def print_doctor(model: str, found: dict[str, Any]) -> None:
    print(
        f"doctor on 500 images, {model}: {found['seconds']} s (bar 10), queries {found['queries']}"
    )
    print("| advice | cells | gain of the restoration it names: least, median, most |")
    for kind in ("advice", "advice with clean"):
        for advice in ("go", "try", "leave", "fix"):
            gains = [100 * cell["gain"] for cell in found["cells"] if cell[kind] == advice]
            if gains:
                told = f"{min(gains):+.1f}, {np.median(gains):+.1f}, {max(gains):+.1f}"
                print(f"| {advice}{kind.removeprefix('advice')} | {len(gains)} | {told} |")


def described(options: argparse.Namespace) -> str:
    return f"the first {options.images} of the test set; clean reference: {options.images} from {CLEAN_FROM}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=500, help="a cell (default 500)")
    parser.add_argument(
        "--after",
        default="half-median",
        help="half-median, or a method of the package such as soda-e",
    )
    parser.add_argument("--budget", type=float, help="queries an image for that method")
    parser.add_argument("--corruptions", nargs="+", default=list(CORRUPTIONS))
    parser.add_argument(
        "--only",
        choices=["estimates", "doctor"],
        help="one of the two parts; the other stays in --out",
    )
    parser.add_argument(
        "--answers",
        type=Path,
        metavar="DIR",
        help="keep the model's answers there, to estimate again",
    )
    parser.add_argument("--out", type=Path, help="write the figures as JSON too")
    options = parser.parse_args()
    began = time.perf_counter()
    results: dict[str, Any] = (
        json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    )
    if options.only != "doctor":
        cells = [
            cell for data, model in (*SETS, UNSEEN) for cell in situations(data, model, options)
        ]
        fit_lines(cells)
        results["table"] = table(cells)
        print_table(results["table"])
        results["imbalance"] = imbalance(options)
        for row in results["imbalance"]:
            known, unaware = row["shares given"], row["unaware"]
            print(
                f"classes {row['ratio']}:1: off by {unaware:.3f}; with the shares given {known:.3f}"
            )
        results["coverage"] = coverage(cells)
        print(f"the interval holds the truth in {results['coverage']}")
        results["cells"] = [
            {key: cell[key] for key in (*CELL, "accuracy", *SHIPPED)} for cell in cells
        ]
    if options.only != "estimates":
        results["doctor"] = {model: doctor(data, model, options) for data, model in SETS}
        for model, found in results["doctor"].items():
            print_doctor(model, found)
    results[f"card of {options.only or 'both'}"] = {
        "soda_tta": __version__,
        "sets": [*SETS, UNSEEN],
        "model": {model: zoo.deployed(model).fingerprint() for _, model in (*SETS, UNSEEN)},
        "images": described(options),
        "corruptions": options.corruptions,
        "severities": SEVERITIES,
        "chosen on": CHOSEN_ON,
        "after": options.after,
        "budget": options.budget,
        "seed": 0,
        "versions": {**versions(), "machine": platform.machine()},
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(results[f"card of {options.only or 'both'}"]))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

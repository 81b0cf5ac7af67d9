"""How well can accuracy be estimated without labels, before and after adaptation?

    SODA_TTA_DATA=... python benchmarks/accuracy_estimates.py --out results/accuracy_estimates.json
    SODA_TTA_DATA=... python benchmarks/accuracy_estimates.py --after soda-e --budget 30

Estimators are chosen by their error on six corruptions. What is reported is their error on the
other thirteen, and on a model that was not used to choose. Whether intervals hold for other models
is in estimate_coverage.py. The second part measures the doctor: is
its advice right, and is it quick? Labels are used only to measure, and where a column says so.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from doctor_advice import measure_advice, print_advice
from estimators import ESTIMATORS, SHIPPED, Responses, Situation
from pages import markdown
from soda_tta import adapt, zoo
from soda_tta._version import __version__
from soda_tta.data import Corrupted, load_dataset
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.engine.card import versions
from soda_tta.judging.balanced import agreement_score
from soda_tta.types import Array

CHOSEN_ON = (  # one noise, one blur, one weather and three digital corruptions
    "gaussian_noise",
    "defocus_blur",
    "fog",
    "contrast",
    "jpeg_compression",
    "pixelate",
)
SEVERITIES = (1, 3, 5)
SETS = (("cifar10", "cifar10_resnet20"), ("cifar100", "cifar100_resnet20"))
HELD_OUT = ("cifar10", "cifar10_resnet32")  # not used to choose
HELD_OUT_SEVERITIES = (3,)  # fewer, to save time
CLEAN_FROM = 5000  # clean reference images are other images than the corrupted ones
RATIOS = (1, 2, 5, 10)  # how much rarer half of the classes are in the imbalance study
QUANTILE = 0.9  # of the errors: the column "margin"
CELL = ("data", "model", "corruption", "severity", "moment")
Cell = dict[str, Any]


def half_median(images: Array) -> Array:
    """A plain restoration in place of an adaptor: half the image, half its 3x3 median."""
    mixed: Array = 0.5 * images + 0.5 * ndimage.median_filter(images, size=(1, 1, 3, 3))
    return mixed


def adapted(shifted: Any, box: Any, options: argparse.Namespace) -> Array:
    """The images after the adaptation that the command line asks for."""
    if options.after == "half-median":
        return half_median(shifted[slice(None)])
    run = adapt(
        shifted, box, method=options.after, budget=options.budget, listener=lambda event: None
    )
    return run.adaptor(shifted[slice(None)])


def measure_cells(data: str, model: str, options: argparse.Namespace) -> list[Cell]:
    """Every estimate and the true accuracy, by corruption, severity and moment."""
    dataset = load_dataset(data)
    box = zoo.deployed(model, threads=1)
    images = dataset.subset(slice(0, options.images))
    reference = dataset.subset(slice(CLEAN_FROM, CLEAN_FROM + options.images))
    file = f"{data}-{model}-{options.images}-{options.after}-{options.budget}.npz"
    responses = Responses(box, options.responses / file if options.responses else None)
    clean = responses.get("clean", lambda: reference[slice(None)])
    severities = HELD_OUT_SEVERITIES if model == HELD_OUT[1] else SEVERITIES
    cells = []
    for corruption, severity in product(options.corruptions, severities):
        shifted = Corrupted(images, corruption, severity, seed=0)
        for moment, load_images in (
            ("before", partial(shifted.__getitem__, slice(None))),
            ("after", partial(adapted, shifted, box, options)),
        ):
            name = f"{corruption}-{severity}-{moment}"
            situation = Situation(name, load_images, responses, clean, reference.labels)
            correct = situation.probabilities.argmax(axis=1) == images.labels
            facts = (data, model, corruption, severity, moment)
            cell = dict(zip(CELL, facts, strict=True))
            cell |= {"images": len(images), "accuracy": float(correct.mean())}
            cell |= {name: each.estimate(situation) for name, each in ESTIMATORS.items()}
            cells.append(cell)
        responses.save()
        print(f"  {data} {model} {corruption} {severity}", flush=True)
    return cells


def fit_lines(cells: list[Cell]) -> None:
    """Turn statistics into accuracies by a line through the six unadapted corruptions of a set."""
    for name, estimator in ESTIMATORS.items():
        if not estimator.fitted:
            continue
        for model in {cell["model"] for cell in cells}:
            own = [cell for cell in cells if cell["model"] == model]
            six = [c for c in own if c["corruption"] in CHOSEN_ON and c["moment"] == "before"]
            slope, constant = np.polyfit([c[name] for c in six], [c["accuracy"] for c in six], 1)
            for cell in own:
                cell[name] = float(slope * cell[name] + constant)


def absolute_errors(
    cells: list[Cell], name: str, chosen: bool | None = None, **facts: Any
) -> Array:
    """The errors of an estimator on the cells with these facts, on the six, the others or all."""
    kept = [
        cell
        for cell in cells
        if all(cell[fact] == value for fact, value in facts.items())
        and (chosen is None or (cell["corruption"] in CHOSEN_ON) == chosen)
    ]
    return np.abs([cell[name] - cell["accuracy"] for cell in kept])


def error_table(cells: list[Cell]) -> list[dict[str, Any]]:
    """One row per estimator: its error on the six corruptions, and on what was held out."""
    rows = []
    chosen_models = [model for _, model in SETS]
    chosen_cells = [cell for cell in cells if cell["model"] in chosen_models]
    for name, estimator in ESTIMATORS.items():
        row: dict[str, Any] = {
            "estimator": name,
            "needs": estimator.needs,
            "queries": estimator.queries,
            "six": float(absolute_errors(chosen_cells, name, True).mean()),
            "six, cifar10 only": float(
                absolute_errors(chosen_cells, name, True, model=SETS[0][1]).mean()
            ),
        }
        for (_, model), moment in product((*SETS, HELD_OUT), ("before", "after")):
            chosen = None if model == HELD_OUT[1] else False
            errors = absolute_errors(cells, name, chosen, model=model, moment=moment)
            if len(errors):
                row[f"{model} {moment}"] = float(errors.mean())
        held_out = absolute_errors(chosen_cells, name, False)
        row["held_out"] = float(held_out.mean())
        row["margin"] = float(np.quantile(held_out, QUANTILE))
        row["worst"] = float(held_out.max())
        rows.append(row)
    return rows


def print_error_table(rows: list[dict[str, Any]]) -> None:
    """Errors in percentage points."""
    columns = [key for key in rows[0] if key not in ("estimator", "needs", "queries")]
    lines = [["estimator", "needs", "queries per image", *columns]]
    for row in rows:
        errors = [f"{100 * row[column]:.1f}" if column in row else "-" for column in columns]
        lines.append([row["estimator"], row["needs"], str(row["queries"]), *errors])
    print(markdown(lines))


def measure_imbalance(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The error where classes are not equally frequent, which the estimate assumes."""
    data, model = SETS[0]
    dataset = load_dataset(data)
    box = zoo.deployed(model, threads=1)
    rare = dataset.labels[:3000] >= 5  # half of the classes
    rows = []
    for ratio in RATIOS:
        errors: dict[str, list[float]] = {"unaware": [], "shares given": []}
        for corruption in CHOSEN_ON:
            keep = np.random.default_rng(0).random(3000) < 1 / ratio
            images = dataset.subset(np.flatnonzero(~rare | keep)[: options.images])
            probabilities = box(Corrupted(images, corruption, 3, seed=0)[slice(None)])
            truth = float((probabilities.argmax(axis=1) == images.labels).mean())
            shares = np.bincount(images.labels, minlength=probabilities.shape[1])
            unaware = agreement_score(probabilities)
            informed = agreement_score(probabilities, shares)
            errors["unaware"].append(abs(unaware - truth))
            errors["shares given"].append(abs(informed - truth))
        means = {name: float(np.mean(values)) for name, values in errors.items()}
        rows.append({"ratio": ratio, **means})
        print(
            f"classes {ratio}:1: error {means['unaware']:.3f}; "
            f"with the class shares specified {means['shares given']:.3f}"
        )
    return rows


def measure_estimates(options: argparse.Namespace) -> dict[str, Any]:
    """Everything about the estimators."""
    cells = [
        cell for data, model in (*SETS, HELD_OUT) for cell in measure_cells(data, model, options)
    ]
    fit_lines(cells)
    table = error_table(cells)
    print_error_table(table)
    return {
        "table": table,
        "imbalance": measure_imbalance(options),
        "cells": [{key: cell[key] for key in (*CELL, "accuracy", *SHIPPED)} for cell in cells],
    }


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=500, help="images per cell (default 500)")
    parser.add_argument(
        "--after", default="half-median", help="half-median (default), or a method such as soda-e"
    )
    parser.add_argument("--budget", type=float, help="queries per image for that method")
    parser.add_argument("--corruptions", nargs="+", default=list(CORRUPTIONS))
    parser.add_argument(
        "--only",
        choices=["estimates", "doctor"],
        help="run one of the two parts; the other one stays in --out",
    )
    parser.add_argument(
        "--responses",
        type=Path,
        metavar="DIR",
        help="keep the model's responses in this folder and reuse them",
    )
    parser.add_argument("--out", type=Path, help="also write the results as JSON")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    start = time.perf_counter()
    results: dict[str, Any] = {}
    if options.out and options.out.exists():
        results = json.loads(options.out.read_text())
    if options.only != "doctor":
        results |= measure_estimates(options)
    if options.only != "estimates":
        results["doctor"] = {}
        for data, model in SETS:
            advice = measure_advice(data, model, CLEAN_FROM, options.corruptions, SEVERITIES)
            results["doctor"][model] = advice
            print_advice(model, advice)
    models = [model for _, model in (*SETS, HELD_OUT)]
    card = {
        "soda_tta": __version__,
        "sets": [*SETS, HELD_OUT],
        "model": {model: zoo.deployed(model).fingerprint() for model in models},
        "images": f"the first {options.images} of the test set; "
        f"clean reference: {options.images} from {CLEAN_FROM}",
        "corruptions": options.corruptions,
        "severities": SEVERITIES,
        "chosen on": CHOSEN_ON,
        "after": options.after,
        "budget": options.budget,
        "seed": 0,
        "versions": {**versions(), "machine": platform.machine()},
        "seconds": round(time.perf_counter() - start, 1),
    }
    results[f"card of {options.only or 'both'}"] = card
    print(json.dumps(card))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

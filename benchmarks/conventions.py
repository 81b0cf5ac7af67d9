"""Is the input convention of a model found from unlabelled images, and is "sure" true?

    python benchmarks/conventions.py              # continues; results/conventions.json
    python benchmarks/conventions.py --tables     # only writes the table of the page

Each case is one search on 128 images with a model that wants a convention of the table. The result
is right if the found convention is the true one or hardly differs from it (see `are_near` and
`have_same_effect`, or the answer says so), and the orientation too. Accuracy is measured with
labels on other images.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from convention_cases import (
    DEVELOPED_ON,
    SEARCHED,
    Answer,
    Case,
    cases,
    images_of,
    kind_of,
    own_model,
    wanting,
)
from pages import markdown, replace_tables
from soda_tta import load_box
from soda_tta.box import Box
from soda_tta.conventions import Convention, find_convention
from soda_tta.conventions.evidence import have_same_effect
from soda_tta.conventions.table import NORMALISATIONS, Candidate, are_near, in_order
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "conventions.json"
PAGE = Path(__file__).parents[1] / "docs" / "research" / "conventions.md"
HOPELESS = 0.1  # accuracy with the true convention below which nothing can be found


def measure(case: Case) -> dict[str, Any]:
    """One search, and what comes of it."""
    answer, size = own_model(case.model)
    images, labels = images_of(case, size)
    searched = min(SEARCHED, len(images) // 2)
    model = wanting(answer, case.truth, case.order)
    found = find_convention(images[:searched], load_box(model, input="auto", size=size))
    true = true_box(model, case, size)
    others, classes = images[searched:], labels[searched:]
    rows = {"true": true(others), "found": found.box(others)}
    usual = load_box(model, size=size)(others)
    accuracy = {
        name: round(float((each.argmax(axis=1) == classes).mean()), 4)
        for name, each in {**rows, "defaults": usual}.items()
    }
    return {
        "name": found["pixels"].name,
        "sure": found.sure,
        "usable": found.usable,
        "right": is_right(found, case, rows),
        "turn": found.box.input.turn,
        "mirror": found.box.input.mirror,
        "recognised": found["pixels"].recognised,
        "share_ahead": found["pixels"].share_ahead,
        "queries": found.queries,
        "accuracy": accuracy,
    }


def true_box(model: Answer, case: Case, size: int) -> Box:
    """The model with its convention stated as it should be."""
    facts = in_order(NORMALISATIONS[case.truth], case.order)
    return load_box(model, size=size, channels=case.order, turn=-case.turn % 360, **facts)


def is_right(found: Convention, case: Case, rows: dict[str, Array]) -> bool:
    """Whether the convention is the true one, or hardly differs from it."""
    if found.box.input.turn != -case.turn % 360:
        return False
    card = found.box.input.card()
    facts = {name: card[name] for name in ("pixel_range", "mean", "std", "channels")}
    true = {**in_order(NORMALISATIONS[case.truth], case.order), "channels": case.order}
    if f"{case.truth}, {case.order}" in found["pixels"].same_effect:
        return True  # the answer says that it hardly differs
    near = are_near(Candidate("found", facts), Candidate("true", true))
    return near or have_same_effect(rows["found"], rows["true"])


def row(name: str, results: list[dict[str, Any]]) -> list[str]:
    """A line of the table."""
    count = len(results)
    kinds = Counter((each["sure"], each["right"]) for each in results)
    losses = [each["accuracy"]["true"] - each["accuracy"]["found"] for each in results]
    used = [each for each in results if each["usable"]]
    gains = [each["accuracy"]["found"] - each["accuracy"]["defaults"] for each in used]
    return [
        name,
        str(count),
        str(kinds[True, True]),
        str(kinds[True, False]),
        str(kinds[False, True]),
        str(kinds[False, False]),
        f"{100 * np.mean([each['right'] for each in results]):.0f} %",
        f"{np.mean([each['queries'] for each in results]):.0f}",
        f"{100 * np.mean(losses):.1f}",
        f"{100 * np.mean(gains):.1f}" if gains else "",
    ]


def table(results: dict[str, dict[str, Any]]) -> str:
    """The table of the page."""
    header = [
        "",
        "searches",
        "sure and right",
        "sure and wrong",
        "not sure, best guess right",
        "not sure, best guess wrong",
        "right",
        "queries",
        "points below the true convention",
        "points above the defaults",
    ]
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in cases():
        result = results.get(case.key)
        if result is None:
            continue
        hopeless = result["accuracy"]["true"] < HOPELESS
        if case.model in DEVELOPED_ON:
            groups["ResNet-20 and MobileNet v1 0.25 (developed on)"].append(result)
            continue
        if hopeless:
            groups["others, the model recognises less than 10 %"].append(result)
            continue
        groups[LABELS[kind_of(case.model)]].append(result)
        if case.turn:
            groups["of these, on their side"].append(result)
        groups["**all that were not developed on**"].append(result)
    names = [*LABELS.values(), "of these, on their side", *groups]
    rows = [row(name, groups[name]) for name in dict.fromkeys(names) if groups[name]]
    return markdown([header, *rows])


LABELS = {
    "cifar": "CIFAR ResNets",
    "imagenet": "ImageNet: ResNet-50, EfficientNet-Lite, Coral",
    "pacs": "PACS classifier",
    "digits": "digits of the demo",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--only", default="", help="models whose name contains this")
    options = parser.parse_args()
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    wanted = [case for case in cases() if options.only in case.model and case.key not in results]
    for number, case in enumerate([] if options.tables else wanted, 1):
        result = measure(case)
        latest = json.loads(OUT.read_text()) if OUT.exists() else {}
        results = {**latest, case.key: result}
        OUT.write_text(json.dumps(results, indent=0) + "\n")
        state = ("sure" if result["sure"] else "unsure", "right" if result["right"] else "WRONG")
        print(f"{number}/{len(wanted)} {case.key}: {result['name']} {state}", flush=True)
        print(f"    {result['accuracy']} {result['queries']} queries", flush=True)
    page = PAGE.read_text()
    PAGE.write_text(replace_tables(page, {"conventions": table(results)}))
    print(table(results))


if __name__ == "__main__":
    main()

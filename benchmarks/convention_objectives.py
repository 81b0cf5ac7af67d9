"""Which measure without labels picks the right input convention most often?

    python benchmarks/convention_objectives.py    # continues; results/convention_objectives.json

Every candidate of the table gets the same 128 images, unmoved and moved by a few pixels, tidied as
the search does it and, for comparison, as they are. Each measure picks its best candidate. A pick
is right if it is the true convention or hardly differs from it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from convention_cases import SEARCHED, SHIFTS, TRUTHS, Case, images_of, own_model, wanting
from pages import markdown, replace_tables
from soda_tta import load_box
from soda_tta.box import Input
from soda_tta.conventions.evidence import have_same_effect, information
from soda_tta.conventions.looks import tidied
from soda_tta.conventions.table import Candidate, are_near, pixel_candidates
from soda_tta.judging.balanced import agreement_score, check_rows
from soda_tta.objectives.agreement import (
    agreement_of_each,
    matching_information_of_each,
    shared_information_of_each,
)
from soda_tta.objectives.equations import entropy
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "convention_objectives.json"
PAGE = Path(__file__).parents[1] / "docs" / "research" / "conventions.md"
MODELS = ("cifar10_resnet20", "mobilenet_v1_0.25_128_quant", "cifar100_resnet32")
HOPELESS = 0.1  # accuracy with the true convention below which nothing can be found
Measure = Callable[[Array, Array], float]  # of the responses to two views

MEASURES: dict[str, Measure] = {
    "mutual information": lambda one, two: float(information(one)[0]),
    "mutual information, two views": lambda one, two: float(
        information(one)[0] + information(two)[0]
    ),
    "matching of two views": lambda one, two: float(matching_information_of_each(one, two).mean()),
    "shared information of two views": lambda one, two: float(
        shared_information_of_each(one, two).mean()
    ),
    "agreement of two views": lambda one, two: float(agreement_of_each(one, two).mean()),
    "confidence": lambda one, two: float(one.max(axis=1).mean()),
    "low entropy": lambda one, two: -float(entropy(one).mean()),
    "spread over classes": lambda one, two: float(entropy(one.mean(axis=0))),
    "confident and evenly spread": lambda one, two: float(agreement_score(check_rows(one))),
}


def shifted(images: Array) -> Array:
    """The images moved right and down by a 32nd of their size."""
    step = max(1, images.shape[2] // 32)
    padded = np.pad(images, ((0, 0), (0, 0), (step, 0), (step, 0)), mode="edge")
    return np.ascontiguousarray(padded[:, :, :-step, :-step])


def picks(case: Case) -> dict[str, Any]:
    """What each measure picks, on tidied images and on images as they are."""
    answer, size = own_model(case.model)
    images, labels = images_of(case, size)
    images, labels = images[:SEARCHED], labels[:SEARCHED]
    model = wanting(answer, case.truth, case.order)
    result: dict[str, Any] = {}
    for look, shown in (("tidied", tidied(images)), ("as they are", images)):
        candidates = pixel_candidates(Input(), frozenset(), ["NCHW"], tidied(images))
        boxes = [load_box(model, size=size, **candidate.facts) for candidate in candidates]
        views = [(box(shown), box(shifted(shown))) for box in boxes]
        true = next(
            place
            for place, candidate in enumerate(candidates)
            if candidate.name == f"{case.truth}, {case.order}"
        )
        for name, measure in MEASURES.items():
            best = int(np.argmax([measure(*pair) for pair in views]))
            result[f"{name} | {look}"] = is_right(candidates, views, best, true)
        if look == "as they are":
            result["accuracy"] = float((views[true][0].argmax(axis=1) == labels).mean())
    return result


def is_right(
    candidates: list[Candidate], views: list[tuple[Array, Array]], best: int, true: int
) -> bool:
    """Whether a pick hardly differs from the truth."""
    near = are_near(candidates[best], candidates[true])
    return bool(near or have_same_effect(views[best][0], views[true][0]))


def table(results: dict[str, dict[str, Any]]) -> str:
    """How often each measure was right, where the model recognises anything."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for result in results.values():
        if result["accuracy"] >= HOPELESS:
            for name in result:
                counts[name].append(result[name])
    rows = [["measure", "queries per image", "tidied images", "images as they are"]]
    for name in MEASURES:
        cells = [counts[f"{name} | {look}"] for look in ("tidied", "as they are")]
        queries = "2" if "two views" in name else "1"
        rows.append([name, queries, *(f"{sum(each)} of {len(each)}" for each in cells)])
    return markdown(rows)


def main() -> None:
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for place, (shift, severity) in enumerate(SHIFTS):
        for model in MODELS:
            for truth in TRUTHS[place % 4 :: 4]:
                case = Case(model, *truth, shift, severity)
                if case.key in results:
                    continue
                results[case.key] = picks(case)
                OUT.write_text(json.dumps(results, indent=0) + "\n")
                print(case.key, flush=True)
    page = PAGE.read_text()
    PAGE.write_text(replace_tables(page, {"convention_objectives": table(results)}))
    print(table(results))


if __name__ == "__main__":
    main()

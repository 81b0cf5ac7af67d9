"""Mixed images: one adaptor for all, one for each condition found, one for each known condition.

    python benchmarks/conditions.py            # run again after a crash to resume
    python benchmarks/conditions.py --row "one adaptor" --setting resnet20    # some of the rows
    python benchmarks/conditions.py --speed    # only how fast images are measured
    python benchmarks/conditions.py --table    # only write the page from what is stored

The same images for all rows of a mixture. Conditions are found from the pixels, without labels and
without knowledge of the mixture. Constants were chosen on another mixture (`DEVELOPED_ON`).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from condition_mixtures import (
    ALL_CLEAN,
    CLEAN,
    FIVE,
    FOUR,
    RARE,
    SEVERITIES,
    Mixed,
    Mixture,
    mixed,
)
from pages import markdown, replace_tables
from soda_tta import adapt, find_conditions, zoo
from soda_tta.conditions.statistics import statistics
from soda_tta.data.corruption_names import CORRUPTIONS
from soda_tta.types import Array

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "conditions.json"
PAGE = ROOT / "docs" / "research" / "conditions.md"
BLOCKS = "in blocks"  # the images sorted by their part; otherwise they are shuffled


class Setting(NamedTuple):
    """Which images in front of which model, at which price."""

    mixture: Mixture
    model: str
    data: str
    images: int
    budget: float

    def __str__(self) -> str:
        return f"{self.mixture.name}; {self.model}; {self.images} images; budget {self.budget:g}"


def on_cifar(mixture: Mixture, model: str, images: int = 3000, budget: float = 15) -> Setting:
    return Setting(mixture, model, model.split("_")[0], images, budget)


SINGLES = tuple(
    on_cifar(Mixture(name, ((name, 5),)), "cifar10_resnet32", 2000, 10)
    for name in (*CORRUPTIONS, CLEAN)
)
IMAGENET = ("imagenet_efficientnet_lite0", "imagenet-val-2000", 1000, 15)
SETTINGS = (
    on_cifar(FOUR, "cifar10_resnet20"),
    on_cifar(FOUR, "cifar10_resnet32"),
    on_cifar(FIVE, "cifar10_resnet20"),
    on_cifar(FIVE, "cifar10_resnet32"),
    on_cifar(RARE, "cifar10_resnet32"),
    on_cifar(SEVERITIES, "cifar10_resnet32"),
    on_cifar(ALL_CLEAN, "cifar10_resnet32", 10_000, 10),
    on_cifar(FOUR, "cifar100_resnet20"),
    on_cifar(FIVE, "cifar100_resnet20"),
    Setting(FOUR, *IMAGENET),
    *SINGLES,
)
FOUND = "conditions found"
ROWS = ("one adaptor", FOUND, "conditions known", "bn", "tent", f"bn, {BLOCKS}")
ROWS = (*ROWS, f"tent, {BLOCKS}")


def measure(setting: Setting, row: str, data: Mixed) -> dict[str, Any]:
    """One row of the table of a setting."""
    began = time.time()
    facts: dict[str, Any] = {}
    if row == "conditions known":
        before, after, queries = adapted_by_part(setting, data)
    elif row.startswith(("bn", "tent")):
        before, after, queries = white_box(setting, row, data)
    else:
        conditions = 1 if row == "one adaptor" else "auto"
        box = zoo.deployed(setting.model, threads=1)
        run = adapt(data.images, box, budget=setting.budget, conditions=conditions)
        before, after, queries = run.before, run.probabilities, run.ledger.total
        facts["conditions"] = 1 if run.conditions is None else len(run.conditions)
        if run.conditions is not None:
            facts["found"] = [
                {"words": each.words, "images": each.images, "adopted": each.adopted}
                for each in run.conditions
            ]
            facts["unfamiliar"] = run.conditions.unfamiliar
    return {
        "before": accuracies(before, data),
        "after": accuracies(after, data),
        "queries_per_image": round(queries / len(data.labels), 2),
        "seconds": round(time.time() - began),
        **facts,
    }


def adapted_by_part(setting: Setting, data: Mixed) -> tuple[Array, Array, int]:
    """One run for each part of the mixture, as if the conditions were known."""
    box = zoo.deployed(setting.model, threads=1)
    before: Array | None = None
    after: Array | None = None
    queries = 0
    of_each = kinds_of(setting, data)
    for kind in np.unique(of_each):
        own = of_each == kind
        run = adapt(data.images[own], box, budget=setting.budget, conditions=1)
        if before is None or after is None:
            before = np.empty((len(own), run.before.shape[1]), np.float32)
            after = before.copy()
        before[own] = run.before
        after[own] = run.probabilities
        queries += run.ledger.total
    assert before is not None and after is not None
    return before, after, queries


def kinds_of(setting: Setting, data: Mixed) -> Array:
    """The true condition of each image; parts that are alike are one condition."""
    parts = setting.mixture.parts
    return np.array([parts.index(part) for part in parts])[data.parts]


def white_box(setting: Setting, row: str, data: Mixed) -> tuple[Array, Array, int]:
    """A method that may change the model, on the shuffled images or part by part."""
    box = zoo.deployed(setting.model, "module")
    order = np.arange(len(data.parts))
    if row.endswith(BLOCKS):
        order = np.argsort(data.parts, kind="stable")
    run = adapt(data.images[order], box, method=row.split(",")[0])
    before = np.empty_like(run.before)
    after = np.empty_like(run.before)
    before[order] = run.before
    after[order] = run.probabilities
    return before, after, 2 * len(order)


def accuracies(rows: Array, data: Mixed) -> dict[str, Any]:
    """The accuracy of all images and of each part, in percent."""
    right = rows.argmax(axis=1) == data.labels
    shares = [float(right[data.parts == part].mean()) for part in np.unique(data.parts)]
    parts = [round(100 * share, 1) for share in shares]
    return {"all": round(100 * float(right.mean()), 1), "parts": parts}


def follows(setting: Setting, data: Mixed) -> dict[str, Any]:
    """Whether conditions follow the corruption and not the class: mutual information in nats."""
    found = find_conditions(data.images).of_each
    kinds = kinds_of(setting, data)
    return {
        "conditions": int(found.max()) + 1,
        "with_corruption": round(mutual_information(found, kinds), 3),
        "entropy_of_corruption": round(mutual_information(kinds, kinds), 3),
        "with_class": round(mutual_information(found, data.labels), 3),
    }


def mutual_information(first: Array, second: Array) -> float:
    """The mutual information of two sets of integers, in nats."""
    counts = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(counts, (first, second), 1)
    joint = counts / counts.sum()
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def rows_of(setting: Setting) -> tuple[str, ...]:
    """The rows that are measured; single corruptions and large ones only need the first."""
    if len(setting.mixture.parts) == 1:
        return ROWS[:2]
    return ROWS if setting.data.startswith("cifar") else ROWS[:3]


def table(results: dict[str, Any]) -> str:
    """All tables of the page."""
    return "\n\n".join((mixtures(results), singles(results), splits(results), speeds(results)))


def mixtures(results: dict[str, Any]) -> str:
    """Accuracy of each part of each mixture."""
    lines = [["mixture; model; images; budget", "row", "all", "each part", "queries per image"]]
    for setting in SETTINGS:
        if len(setting.mixture.parts) == 1:
            continue
        stored = results.get(str(setting), {})
        for row in rows_of(setting):
            if row in stored:
                if row == ROWS[0]:
                    lines.append(line(setting, "unadapted", stored[row]["before"], 1))
                cell = stored[row]
                name = row
                if row == FOUND:
                    name = f"{row} ({cell['conditions']})"
                lines.append(line(setting, name, cell["after"], cell["queries_per_image"]))
    return markdown(lines)


def line(setting: Setting, row: str, accuracy: dict[str, Any], queries: float) -> list[str]:
    parts = accuracy["parts"]
    shown = " / ".join(f"{part:.1f}" for part in parts) if len(parts) <= 5 else rest(setting, parts)
    first = str(setting) if row == "unadapted" else ""
    return [first, row, f"{accuracy['all']:.1f}", shown, f"{queries:g}"]


def rest(setting: Setting, parts: list[float]) -> str:
    """Many parts in short: the mean of the corrupted ones, and the clean ones."""
    names = [name for name, _ in setting.mixture.parts]
    clean = [part for part, name in zip(parts, names, strict=True) if name == CLEAN]
    others = [part for part, name in zip(parts, names, strict=True) if name != CLEAN]
    return f"corrupted {np.mean(others):.1f}, clean {np.mean(clean):.1f}"


def singles(results: dict[str, Any]) -> str:
    """Folders with one corruption: what looking for conditions costs."""
    lines = [["corruption", "unadapted", "one adaptor", "conditions found", "conditions"]]
    differences = []
    for setting in SINGLES:
        stored = results.get(str(setting), {})
        alike = stored.get("split", {}).get("conditions") == 1
        figures = ["-", "-", "-"]
        if FOUND in stored and ROWS[0] in stored:
            one, found = (stored[row] for row in ROWS[:2])
            values = [one["before"]["all"], one["after"]["all"], found["after"]["all"]]
            figures = [f"{value:.1f}" for value in values]
            count = str(found["conditions"])
            difference = values[2] - values[1]
        elif alike:
            count, difference = "1: the same run", 0.0
        else:
            continue
        lines.append([setting.mixture.name, *figures, count])
        if setting.mixture.name != CLEAN:
            differences.append(difference)
    if differences:
        mean = f"mean difference of {len(differences)}"
        lines.append([mean, "", "", f"{np.mean(differences):+.2f}", ""])
    return markdown(lines)


def splits(results: dict[str, Any]) -> str:
    """Whether the split follows the corruption or the class."""
    lines = [["mixture", "conditions", "information with the corruption", "with the class"]]
    for setting in SETTINGS:
        stored = results.get(str(setting), {}).get("split")
        if stored is not None and len(setting.mixture.parts) > 1:
            corruption = f"{stored['with_corruption']:.2f} of {stored['entropy_of_corruption']:.2f}"
            name = f"{setting.mixture.name} ({setting.data})"
            lines.append(
                [name, str(stored["conditions"]), corruption, f"{stored['with_class']:.3f}"]
            )
    return markdown(lines)


def measured_speeds() -> dict[str, int]:
    """Images per second whose statistics are computed, on one thread."""
    rates = {}
    for size, count in ((32, 2000), (224, 200)):
        images = np.random.default_rng(0).random((count, 3, size, size), np.float32)
        statistics(images[:10])
        began = time.perf_counter()
        for start in range(0, count, 100):
            statistics(images[start : start + 100])
        rates[f"{size} px"] = round(count / (time.perf_counter() - began))
    return rates


def speeds(results: dict[str, Any]) -> str:
    """How fast images are measured."""
    rates = results.get("speed", {})
    rows = [[size, f"{rate:,}"] for size, rate in rates.items()]
    return markdown([["images", "measured per second and core"], *rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="only write the page")
    parser.add_argument("--speed", action="store_true", help="only measure the statistics")
    parser.add_argument("--row", help="only this row")
    parser.add_argument("--setting", default="", help="only settings with this in their name")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    if options.speed:
        results["speed"] = measured_speeds()
        OUT.write_text(json.dumps(results, indent=1) + "\n")
    chosen = [each for each in SETTINGS if options.setting in str(each)]
    for setting in () if options.table or options.speed else chosen:
        stored = results.setdefault(str(setting), {})
        missing = [row for row in rows_of(setting) if row not in stored]
        missing = [row for row in missing if options.row in (None, row)]
        if not missing and "split" in stored:
            continue
        data = mixed(setting.mixture, setting.data, setting.images)
        if "split" not in stored:
            stored["split"] = follows(setting, data)
            OUT.write_text(json.dumps(results, indent=1) + "\n")
        for row in missing:
            if row == FOUND and ROWS[0] in stored and stored["split"]["conditions"] == 1:
                # All images are alike: it is the same run, and tests say so.
                stored[row] = stored[ROWS[0]]
            else:
                stored[row] = measure(setting, row, data)
            OUT.write_text(json.dumps(results, indent=1) + "\n")
            print(setting, row, stored[row]["after"], stored[row]["queries_per_image"], flush=True)
    PAGE.write_text(replace_tables(PAGE.read_text(), {"conditions": table(results)}))


if __name__ == "__main__":
    main()

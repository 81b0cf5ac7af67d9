"""The gate of live traffic: how often it promotes what does not help, and how soon what does.

    python benchmarks/gate.py null        # 1,000 streams without any gain, of four kinds
    python benchmarks/gate.py model       # random changes of real images, a real model
    python benchmarks/gate.py table       # write what is stored to docs/research/live.md

In a null stream no candidate is better than the images as they are. Each stream tests candidate
after candidate, and the gate is looked at after every image. A stream counts as wrong if any of its
candidates is ever promoted. Writes results/gate.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from pages import markdown, replace_tables
from soda_tta.data.near_copies import NearCopies
from soda_tta.judging.gate import Gate
from soda_tta.judging.sequential import level_of
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "gate.json"
PAGE = Path(__file__).parents[1] / "docs" / "research" / "live.md"
STREAMS = 1000
IMAGES = 600  # per stream
PER_CANDIDATE = 150  # images after which the next candidate comes
CLASSES = 10
FRAMES = 5  # of each scene, in the streams of scenes
GIVEN_UP = 3000  # images
LEVELS = (0.05, 0.01)
NULLS = {
    "independent images": "independent",
    "candidates that are only more confident": "confident",
    "scenes of five frames, thinned": "scenes",
    "scenes of five frames, each frame counted": "frames",
}
CORRUPTIONS = ("clean", "gaussian_noise", "fog", "jpeg_compression")
CHANGES = 12  # random changes per set of images


def responses(random: np.random.Generator, clarity: float, label: int) -> Array:
    """Two views of an image: what is recognised depends on the clarity, the rest is chance."""
    logits = random.normal(0, 1, (1, CLASSES)) + random.normal(0, 0.7, (2, CLASSES))
    logits[:, label] += clarity
    powers = np.exp(2 * logits)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def pair(random: np.random.Generator, kind: str, clarities: Array) -> tuple[Array, Array]:
    """Responses of the current adaptor and of a candidate that is no better."""
    label = int(random.integers(CLASSES))
    current, candidate = (responses(random, clarity, label) for clarity in clarities)
    if kind == "confident":
        candidate = candidate**2 / (candidate**2).sum(axis=1, keepdims=True)
    return current, candidate


def scene(random: np.random.Generator) -> Array:
    """A picture: smooth random colours."""
    from scipy.ndimage import gaussian_filter

    smooth = gaussian_filter(random.standard_normal((3, 32, 32)), (0, 1.5, 1.5))
    return np.asarray(smooth / smooth.std())


def life(kind: str, seed: int) -> float:
    """The smallest level of the whole life at which a null stream would have promoted something."""
    random = np.random.default_rng([seed, list(NULLS.values()).index(kind)])
    latest = NearCopies(256)
    smallest = 1.0
    number = 0
    gate = Gate(1.0)
    picture = scene(random)
    clarities = np.full(2, 2.0)
    for place in range(IMAGES):
        if kind in ("scenes", "frames") and place % FRAMES == 0:
            picture = scene(random)
            clarities = random.permutation([1.0, 3.0])  # one adaptor suits this scene better
        if kind == "scenes":
            frame = np.roll(picture, place % FRAMES, axis=2) + random.normal(0, 0.05, (3, 32, 32))
            if not latest.is_new(frame.astype(np.float32)):
                continue
        if place % PER_CANDIDATE == 0 or number == 0:
            number += 1
            gate = Gate(1.0)
        gate.add(*pair(random, kind, clarities))
        smallest = min(smallest, gate.capital.p_value / level_of(number, 1.0))
    return smallest


def images_needed(clarity: float, seeds: int = 100) -> tuple[int, float]:
    """The median number of images until a first candidate that helps is promoted, and its gain."""
    counts = []
    accuracies = []
    for seed in range(seeds):
        random = np.random.default_rng([seed, 77])
        gate = Gate(level_of(1, 0.01))
        right = []
        while not gate.passed and gate.images < GIVEN_UP:
            label = int(random.integers(CLASSES))
            views = [responses(random, each, label) for each in (2.0, clarity)]
            gate.add(*views)
            right.append([rows[0].argmax() == label for rows in views])
        counts.append(gate.images)
        accuracies.append(np.array(right).mean(axis=0))
    before, after = np.mean(accuracies, axis=0)
    return int(np.median(counts)), 100 * (after - before)


def null() -> dict[str, Any]:
    """Rates of streams with a false promotion, and images needed for true gains."""
    found: dict[str, Any] = {"streams": STREAMS, "images": IMAGES}
    for name, kind in NULLS.items():
        lives = np.array([life(kind, seed) for seed in range(STREAMS)])
        found[name] = {str(level): float((lives <= level).mean()) for level in LEVELS}
        print(name, found[name], flush=True)
    found["needed"] = [images_needed(clarity) for clarity in (2.25, 2.5, 3.0, 4.0)]
    return found


def model() -> list[dict[str, Any]]:
    """Random changes of real images, and whether the gate promotes them."""
    from soda_tta import zoo
    from soda_tta.adaptors import Bank, BankAdaptor
    from soda_tta.data import Corrupted, load_dataset
    from soda_tta.judging.verdict import moved
    from verdicts import image_indices, random_changes

    box = zoo.deployed("cifar10_resnet20", threads=1)
    data = load_dataset("cifar10")
    labels = np.asarray(data.labels)
    cases = []
    for corruption in CORRUPTIONS:
        for unbalanced in (False, True):
            places = image_indices(labels, 500, unbalanced)
            chosen = data.subset(places)
            source = chosen if corruption == "clean" else Corrupted(chosen, corruption, 5, seed=0)
            images = source[slice(0, len(places))]
            rows = []
            for change in random_changes(CHANGES):
                adaptor = BankAdaptor(structure=Bank(), parameters=change.astype(np.float32))
                adapted = adaptor(images)
                rows.append(np.stack([box(adapted), box(moved(adapted))], axis=1))
            right = [100 * (each[:, 0].argmax(axis=1) == labels[places]).mean() for each in rows]
            for place in range(1, len(rows)):
                gate = Gate(level_of(5, 0.01))  # as the fifth candidate of a life
                for image in np.random.default_rng(place).permutation(len(images)):
                    gate.add(rows[0][image], rows[place][image])
                    if gate.passed:
                        break
                cases.append(
                    {
                        "images": f"{corruption}{', unbalanced' if unbalanced else ''}",
                        "gain": round(right[place] - right[0], 1),
                        "promoted": gate.passed,
                        "after": gate.images,
                    }
                )
    return cases


def tables(stored: dict[str, Any]) -> dict[str, str]:
    """The tables of the page, by name."""
    found = {}
    if "null" in stored:
        lines = [["null streams", *(f"wrong at level {level:g}" for level in LEVELS)]]
        for name in NULLS:
            rates = stored["null"][name]
            lines.append([name, *(f"{100 * rates[str(level)]:.1f} %" for level in LEVELS)])
        found["gate-null"] = markdown(lines)
        lines = [["true gain of accuracy, simulated", "images until promoted (median)"]]
        for count, gain in stored["null"]["needed"]:
            lines.append(
                [f"{gain:+.1f} points", str(count) if count < GIVEN_UP else "not by 3,000"]
            )
        found["gate-power"] = markdown(lines)
    if "model" in stored:
        lines = [["change of accuracy", "cases", "promoted", "images until promoted (median)"]]
        steps = ((-100, -1), (-1, 1), (1, 5), (5, 10), (10, 20), (20, 100))
        for low, high in steps:
            cases = [case for case in stored["model"] if low < case["gain"] <= high]
            after = [case["after"] for case in cases if case["promoted"]]
            median = str(int(np.median(after))) if after else "-"
            lines.append([f"{low} to {high} points", str(len(cases)), str(len(after)), median])
        found["gate-model"] = markdown(lines)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["null", "model", "table"])
    part = parser.parse_args().part
    stored = json.loads(OUT.read_text()) if OUT.exists() else {}
    if part != "table":
        stored[part] = null() if part == "null" else model()
        OUT.write_text(json.dumps(stored, indent=1) + "\n")
    found = tables(stored)
    PAGE.write_text(replace_tables(PAGE.read_text(), found))
    print("\n\n".join(found.values()))


if __name__ == "__main__":
    main()

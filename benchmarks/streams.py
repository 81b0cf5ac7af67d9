"""Live traffic with shifts that come, go, mix and return, at 3 queries per image: accuracy in time.

    python benchmarks/streams.py run changing mixed    # the sequences of the tables
    python benchmarks/streams.py run development       # the one that constants were chosen on
    python benchmarks/streams.py table

ResNet-20 on CIFAR-10, severity 5. `LiveStream` answers with one query per image and learns with two
more at most. Labels are used only to measure. "offline" is soda-e on all images of a shift at once,
with the same budget. What is in results/streams.json is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pages import markdown, replace_tables
from soda_tta import Stream, adapt, zoo
from soda_tta.data import Corrupted, load_dataset
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "streams.json"
PAGE = Path(__file__).parents[1] / "docs" / "research" / "live.md"
MODEL = "cifar10_resnet20"
SEVERITY = 5
BATCH = 16  # images per request
COUNTED = 100  # images per point of a curve
WINDOW = 1000
GOAL = 0.7  # share of the offline gain


class Sequence(NamedTuple):
    """Conditions one after the other, or all at once."""

    segments: tuple[str, ...]
    images: int  # per segment
    shuffled: bool = False


SEQUENCES = {
    "development": Sequence(
        ("clean", "speckle_noise", "clean", "defocus_blur", "speckle_noise"), 4000
    ),
    "changing": Sequence(("clean", "gaussian_noise", "clean", "fog", "gaussian_noise"), 5000),
    "mixed": Sequence(("gaussian_noise", "defocus_blur", "contrast", "clean"), 5000, shuffled=True),
}


def shifted(data: Any, places: Array, condition: str, seed: int) -> Any:
    """Images of one condition."""
    chosen = data.subset(places)
    return chosen if condition == "clean" else Corrupted(chosen, condition, SEVERITY, seed=seed)


def traffic(sequence: Sequence, data: Any) -> tuple[Array, Array, Array]:
    """All images in the order of their arrival, their labels, and the segment of each."""
    images, labels, segments = [], [], []
    halves = np.array_split(np.random.default_rng(0).permutation(len(data)), 2)
    for number, condition in enumerate(sequence.segments):
        places = halves[number % 2][: sequence.images]
        source = shifted(data, places, condition, seed=number)
        images.append(source[slice(0, len(places))])
        labels.append(np.asarray(data.labels)[places])
        segments.append(np.full(len(places), number))
    rows = [np.concatenate(each) for each in (images, labels, segments)]
    if sequence.shuffled:
        order = np.random.default_rng(1).permutation(len(rows[0]))
        rows = [each[order] for each in rows]
    return rows[0], rows[1], rows[2]


def correct(answer: Callable[[Array], Array], images: Array, labels: Array, batch: int) -> Array:
    """Whether each image is answered correctly, in the order of arrival."""
    starts = range(0, len(images), batch)
    classes = [answer(images[start : start + batch]).argmax(axis=1) for start in starts]
    return np.asarray(np.concatenate(classes) == labels)


def run(name: str) -> dict[str, Any]:
    """One sequence: direct, live, and soda-e offline on each kind of shift."""
    sequence = SEQUENCES[name]
    box = zoo.deployed(MODEL, threads=1)
    data = load_dataset("cifar10")
    images, labels, segments = traffic(sequence, data)
    events: list[dict[str, Any]] = []
    stream = Stream(box, method="soda-e", listener=lambda event: events.append(event.facts()))
    begin = time.perf_counter()
    live = correct(stream, images, labels, BATCH)
    seconds = time.perf_counter() - begin
    direct = correct(box, images, labels, 256)
    offline: dict[str, float] = {}
    for number, condition in enumerate(sequence.segments):
        own = segments == number
        if condition not in offline:
            found = adapt(images[own], box, budget=3)
            right = 100 * (found.probabilities.argmax(axis=1) == labels[own]).mean()
            offline[condition] = float(right - 100 * direct[own].mean())
    return {
        "segments": sequence.segments,
        "shuffled": sequence.shuffled,
        "images": len(images),
        "queries": stream.ledger.by_purpose(),
        "seconds": round(seconds),
        "offline gain": offline,
        "curves": curves(sequence, live, direct, segments),
        "events": events,
        "conditions": stream.facts()["sources"][0]["conditions"],
    }


def curves(sequence: Sequence, live: Array, direct: Array, segments: Array) -> dict[str, Any]:
    """Correct answers per 100 images; of a shuffled stream for each condition by itself as well."""
    found = {"all": points(live, direct)}
    for number, condition in enumerate(sequence.segments if sequence.shuffled else ()):
        own = segments == number
        found[condition] = points(live[own], direct[own])
    return found


def points(live: Array, direct: Array) -> dict[str, list[int]]:
    """Correct answers in each piece of 100 images."""
    count = len(live) // COUNTED * COUNTED
    pieces = [each[:count].reshape(-1, COUNTED).sum(axis=1) for each in (live, direct)]
    return {"live": pieces[0].tolist(), "direct": pieces[1].tolist()}


def windows(curve: dict[str, list[int]]) -> Array:
    """Accuracy of live and direct in each window of 1,000 images, as rows."""
    size = WINDOW // COUNTED
    rows = []
    for name in ("direct", "live"):
        count = len(curve[name]) // size * size
        rows.append(np.array(curve[name][:count]).reshape(-1, size).sum(axis=1) * 100 / WINDOW)
    return np.array(rows)


def until_goal(curve: dict[str, list[int]], gain: float) -> int | None:
    """Images until the last 300 have 70 % of the offline gain on average; None if never."""
    gains = np.array(curve["live"], float) - np.array(curve["direct"], float)
    for end in range(3, len(gains) + 1):
        if gains[end - 3 : end].mean() >= GOAL * gain:
            return end * COUNTED
    return None


def parts(result: dict[str, Any]) -> list[tuple[str, dict[str, list[int]]]]:
    """The curve of each segment, or of each condition of a mixed stream."""
    if result["shuffled"]:
        return [(name, result["curves"][name]) for name in result["segments"]]
    size = result["images"] // len(result["segments"]) // COUNTED
    whole = result["curves"]["all"]
    return [
        (name, {each: whole[each][number * size :][:size] for each in whole})
        for number, name in enumerate(result["segments"])
    ]


def table(name: str, result: dict[str, Any]) -> str:
    """One row per segment, and the worst window."""
    header = ["shift", "direct", "live", "live, last 1,000", "offline gain"]
    lines = [[*header, "images until 70 % of it"]]
    for condition, curve in parts(result):
        gain = result["offline gain"][condition]
        direct, live = (np.mean(curve[each]) for each in ("direct", "live"))
        last = np.mean(curve["live"][-WINDOW // COUNTED :])
        goal = until_goal(curve, gain) if gain > 1 else None
        reached = "-" if goal is None else f"{goal:,}"
        words = condition.replace("_", " ")
        lines.append(
            [words, f"{direct:.1f}", f"{live:.1f}", f"{last:.1f}", f"{gain:+.1f}", reached]
        )
    rows = windows(result["curves"]["all"])
    worst = (rows[1] - rows[0]).min()
    queries = result["queries"]
    spent = ", ".join(
        f"{purpose} {count / result['images']:.2f}" for purpose, count in queries.items()
    )
    promotions = sum(event["event"] == "promoted" for event in result["events"])
    rollbacks = sum(event["event"] == "rolled back" for event in result["events"])
    return (
        f"**{name.capitalize()}**: {result['images']:,} images\n\n{markdown(lines)}\n\n"
        f"Worst window of 1,000 against direct: {worst:+.1f} points. "
        f"Queries per image: {spent}. {promotions} promotions, {rollbacks} rollbacks.\n\n"
        + markdown(
            [["window of 1,000", *(str(place + 1) for place in range(rows.shape[1]))]]
            + [
                [word, *(f"{value:.1f}" for value in row)]
                for word, row in zip(("direct", "live"), rows, strict=True)
            ]
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("names", nargs="*", metavar="SEQUENCE", help=", ".join(SEQUENCES))
    parser.add_argument("--again", action="store_true", help="run what is stored once more")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(SEQUENCES)):
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(SEQUENCES)}")
    stored = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in options.names if options.action == "run" else ():
        if name not in stored or options.again:
            result = run(name)
            stored = json.loads(OUT.read_text()) if OUT.exists() else {}  # others may have run
            stored[name] = result
            OUT.write_text(json.dumps(stored) + "\n")
    page = PAGE.read_text()
    PAGE.write_text(replace_tables(page, {name: table(name, stored[name]) for name in stored}))
    for name in options.names or stored:
        print(table(name, stored[name]), end="\n\n")


if __name__ == "__main__":
    main()

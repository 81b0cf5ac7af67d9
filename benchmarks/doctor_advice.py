"""Is the doctor's advice right, and is it quick? Part of benchmarks/accuracy_estimates.py."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from soda_tta import zoo
from soda_tta.box import Box, Cached
from soda_tta.data import Corrupted, load_dataset
from soda_tta.doctor import examine
from soda_tta.doctor.trial import RESTORATIONS
from soda_tta.types import Array

IMAGES = 500  # the doctor's own sample size
ROUNDS = 3  # of the time measurement
SECONDS_LIMIT = 10


def measure_advice(
    data: str, model: str, clean_from: int, corruptions: list[str], severities: tuple[int, ...]
) -> dict[str, Any]:
    """The doctor's advice on every corruption, and the true gain of the restoration it names."""
    dataset = load_dataset(data)
    box = zoo.deployed(model, threads=1)
    images = dataset.subset(slice(0, IMAGES))
    reference = dataset.subset(slice(clean_from, clean_from + IMAGES))
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        queries = examine(images, box).queries
        seconds.append(round(time.perf_counter() - start, 2))
    cached = Cached(box)  # the same images are queried with and without the clean reference
    cells = [advice_on("clean", 1, images, reference, cached)]
    for corruption in corruptions:
        for severity in severities:
            cells.append(advice_on(corruption, severity, images, reference, cached))
        print(f"  doctor {model} {corruption}", flush=True)
    return {"seconds": seconds, "queries": queries, "cells": cells}


def advice_on(
    corruption: str, severity: int, images: Any, reference: Any, box: Box
) -> dict[str, Any]:
    """The advice with and without clean reference images, and what the best restoration gains."""
    source = images if corruption == "clean" else Corrupted(images, corruption, severity, seed=0)
    pixels = source[slice(None)]
    examination = examine(pixels, box)
    informed = examine(pixels, box, clean=reference)
    restoration = examination["trial"].measurements["best"]
    restored = np.clip(RESTORATIONS[restoration](pixels), 0, 1).astype(np.float32)
    accuracy = accuracy_of(box(pixels), images.labels)
    return {
        "corruption": corruption,
        "severity": severity,
        "advice": examination.advice,
        "advice with clean": informed.advice,
        "p value": informed["shift"].measurements["p_value"] if "shift" in informed else None,
        "accuracy": accuracy,
        "estimate": examination.estimate.accuracy if examination.estimate else None,
        "restoration": restoration,
        "gain": accuracy_of(box(restored), images.labels) - accuracy,
    }


def accuracy_of(probabilities: Array, labels: Array) -> float:
    """The share of correct predictions."""
    return float((probabilities.argmax(axis=1) == labels).mean())


def print_advice(model: str, measured: dict[str, Any]) -> None:
    """The gains behind each advice as a Markdown table."""
    print(
        f"doctor on {IMAGES} images, {model}: {measured['seconds']} s (limit {SECONDS_LIMIT}), "
        f"queries {measured['queries']}"
    )
    print("| advice | cells | lowest gain of the named restoration | median | highest |")
    print("|---|---|---|---|---|")
    for kind in ("advice", "advice with clean"):
        for advice in ("go", "try", "leave", "fix"):
            gains = [100 * cell["gain"] for cell in measured["cells"] if cell[kind] == advice]
            if gains:
                name = f"{advice}{kind.removeprefix('advice')}"
                values = (min(gains), np.median(gains), max(gains))
                shown = " | ".join(f"{value:+.1f}" for value in values)
                print(f"| {name} | {len(gains)} | {shown} |")

"""Decide whether a claim about two rows of a table holds, from the results of their cells.

A difference counts if it exceeds two standard errors. Where both rows stored which images they
classified correctly, they are compared image by image; otherwise two runs are assumed to differ in
a fixed share of their predictions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from cell_results import Entry, column_of, correct_images
from paper_rows import Claim
from soda_tta.bench import Cell
from soda_tta.types import Array

CORRELATION = 0.12  # of the differences between two runs on one image, over the 19 corruptions
DIFFERING = 0.35  # share of predictions that differ: 0.26 to 0.36 for soda, soda-fo and deployed
EQUAL_WITHIN = 5.0  # points: half of what the paper's SODA gains

Outcome = Literal["yes", "no", "undecided", "not measured"]


@dataclass(frozen=True)
class Judgement:
    """Whether a claim holds here, and the accuracies that decide it."""

    claim: Claim
    outcome: Outcome
    explanation: str = ""  # in Markdown
    accuracies: str = ""

    def __str__(self) -> str:
        if self.outcome == "not measured":
            return f"- {self.claim.sentence}: not measured yet."
        return f"- {self.claim.sentence}: {self.explanation} ({self.accuracies})."


def judge_claim(
    claim: Claim,
    rows: dict[str, list[Entry]],
    means: dict[str, float],
    columns: Sequence[str],
    gain: bool,
) -> Judgement:
    """Compare the means of the two rows; with `gain` the means are points gained."""
    if claim.first not in means or claim.second not in means:
        return Judgement(claim, "not measured")
    first, second = (
        [entry for entry in rows[name] if column_of(entry[0]) in columns]
        for name in (claim.first, claim.second)
    )
    if len(first) != len(second):  # an unfinished grid: they differ in more than the claim
        return Judgement(claim, "not measured")
    sign = "+" if gain else ""
    accuracies = ", ".join(
        f"{name} {means[name]:{sign}.1f}" for name in (claim.first, claim.second)
    )
    compared = None if gain else compare_images(first, second)
    if compared is None:
        compared = means[claim.first] - means[claim.second], unpaired_margin(first, second)
    decide = decide_equality if claim.equal else decide_order
    outcome, explanation = decide(*compared)
    return Judgement(claim, outcome, explanation, accuracies)


def decide_order(difference: float, margin: float) -> tuple[Outcome, str]:
    """Whether the first row is better, given two standard errors of the difference."""
    if abs(difference) < margin:
        return "undecided", f"**undecided**, the difference is below {margin:.1f} points"
    return ("yes", "**holds**") if difference > 0 else ("no", "**does not hold**")


def decide_equality(difference: float, margin: float) -> tuple[Outcome, str]:
    """Whether a difference of more than EQUAL_WITHIN points can be ruled out."""
    if abs(difference) >= margin:
        return "no", "**does not hold**, the two differ"
    possible = abs(difference) + margin  # 19 of 20 such measurements rule out more
    if possible <= EQUAL_WITHIN:
        return "yes", f"**holds**, no difference above {possible:.1f} points"
    return "undecided", f"**undecided**, a difference of {possible:.1f} points is possible"


def unpaired_margin(first: list[Entry], second: list[Entry]) -> float:
    """Two standard errors, in points, of the difference between two runs that kept no predictions.

    Cells show the same images under another corruption, so they count less than new images would.
    """
    effective = []
    for entries in (first, second):
        images = min(cell.images for cell, _ in entries)
        cells = len(entries)
        effective.append(images * cells / (1 + (cells - 1) * CORRELATION))
    return 200 * math.sqrt(DIFFERING / min(effective))


def compare_images(first: list[Entry], second: list[Entry]) -> tuple[float, float] | None:
    """The difference and two standard errors, image by image; None if predictions are missing.

    An image counts once, however many corruptions and seeds show it: its differences are averaged.
    Two additional images, one gained and one lost, prevent certainty from a handful of differences.
    """
    correct_first = correct_by_input(first)
    correct_second = correct_by_input(second)
    if correct_first is None or correct_second is None:
        return None
    if correct_first.keys() != correct_second.keys():
        return None
    by_image_set: dict[tuple[str, int], list[Array]] = {}
    for shown, correct in correct_first.items():
        changes = by_image_set.setdefault((shown.data, shown.images), [])
        changes.append(correct - correct_second[shown])
    difference = 0.0
    variance = 0.0
    for changes in by_image_set.values():
        per_image = np.mean(changes, axis=0)
        share = len(changes) / len(correct_first)
        difference += share * float(per_image.mean())
        variance += share**2 * float(np.var([*per_image, 1, -1])) / len(per_image)
    return 100 * difference, 200 * math.sqrt(variance)


class RunInput(NamedTuple):
    """What a run was shown: two runs with the same input can be compared image by image."""

    data: str
    model: str
    corruption: str
    severity: int
    images: int
    order: str
    seed: int


def input_of(cell: Cell) -> RunInput:
    """The input of a cell."""
    return RunInput(*(getattr(cell, name) for name in RunInput._fields))


def correct_by_input(entries: list[Entry]) -> dict[RunInput, Any] | None:
    """By input: the share of correct predictions of each image; None if a cell lacks them."""
    correct: dict[RunInput, list[Array]] = {}
    for cell, result in entries:
        flags = correct_images(cell, result)
        if flags is None:
            return None
        correct.setdefault(input_of(cell), []).append(flags)
    return {shown: np.mean(flags, axis=0) for shown, flags in correct.items()}


def check_one_run_per_input(rows: dict[str, list[Entry]], averaged: Sequence[str]) -> None:
    """Refuse rows with two runs on the same input: their mean belongs to neither experiment."""
    for name, entries in rows.items():
        if name not in averaged and len({input_of(cell) for cell, _ in entries}) < len(entries):
            titles = "\n  ".join(cell.title for cell, _ in entries)
            raise SystemExit(f"The row {name!r} mixes experiments; remove some of:\n  {titles}")

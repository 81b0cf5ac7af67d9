"""Everything a page says about one run in numbers: computed once, shown as HTML, printed as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from soda_tta.judging.estimate import Estimate, estimate_accuracy
from soda_tta.report.account import Account
from soda_tta.report.answers import (
    Answers,
    Calibration,
    ClassChange,
    Mistake,
    Share,
    calibration,
    class_changes,
    confusion,
    gain_of,
    mistakes,
    reduce_answers,
    share_right,
)
from soda_tta.report.labels import Labels
from soda_tta.types import Array

ESTIMATED_ON = 100_000  # rows; more add nothing to an estimate that is off by some points
MATRIX = 20  # classes a confusion matrix is shown for


@dataclass
class Measured:
    """What labels tell."""

    images: int  # with a label
    before: Share
    after: Share | None
    gain: Share | None
    calibration_before: Calibration
    calibration_after: Calibration | None
    mended: int = 0  # wrong before, right after
    harmed: int = 0  # right before, wrong after
    classes: list[ClassChange] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    confusion_before: Array | None = None
    confusion_after: Array | None = None


@dataclass
class Findings:
    """A run, its answers reduced, and what is known or guessed of its accuracy."""

    account: Account
    before: Answers | None = None
    after: Answers | None = None
    estimate_before: Estimate | None = None
    estimate_after: Estimate | None = None
    measured: Measured | None = None
    class_names: list[str] = field(default_factory=list)
    price: float | None = None

    @property
    def changed(self) -> int | None:
        """How many images are given another class."""
        if self.before is None or self.after is None:
            return None
        return int((self.before.classes != self.after.classes).sum())

    @property
    def cost(self) -> float | None:
        return None if self.price is None else self.account.total_queries / 1000 * self.price

    def facts(self) -> dict[str, Any]:
        """For a pipeline: plain JSON."""
        account, measured = self.account, self.measured
        return {
            "title": account.title,
            "method": account.card.get("method"),
            "images": account.count,
            "stopped": account.stopped,
            "queries": account.queries,
            "total_queries": account.total_queries,
            "cost": self.cost,
            "changed_answers": self.changed,
            "mean_confidence": [a and a.mean_confidence for a in (self.before, self.after)],
            "mutual_information": [a and a.mutual_information for a in (self.before, self.after)],
            "estimated_accuracy": [
                e and asdict(e) for e in (self.estimate_before, self.estimate_after)
            ],
            "accuracy": None
            if measured is None
            else {
                "images": measured.images,
                "before": asdict(measured.before),
                "after": measured.after and asdict(measured.after),
                "gain": measured.gain and asdict(measured.gain),
                "mended": measured.mended,
                "harmed": measured.harmed,
                "ece": [
                    c and c.error for c in (measured.calibration_before, measured.calibration_after)
                ],
            },
            "verdict": account.verdict and account.verdict.facts(),
            "missing": account.missing,
        }


def find(
    account: Account, labels: Labels | None, classes: tuple[str, ...] | None, price: float | None
) -> Findings:
    """Reduce a run to its findings."""
    found = Findings(account, price=price)
    if account.before is None:
        return found
    width = account.before.shape[1]
    names = list(classes or (labels.classes if labels is not None else None) or ())
    found.class_names = [
        names[index] if index < len(names) else str(index) for index in range(width)
    ]
    found.before, found.estimate_before = (
        reduce_answers(account.before),
        estimate_accuracy(sample(account.before)),
    )
    if account.after is not None:
        found.after, found.estimate_after = (
            reduce_answers(account.after),
            estimate_accuracy(sample(account.after)),
        )
    if labels is not None and labels.known[: len(account.before)].any():
        found.measured = measure(
            found.before, found.after, labels.values[: len(account.before)], width
        )
    return found


def sample(probabilities: Array) -> Array:
    """All rows, or evenly spread ones of a very large set."""
    step = -(-len(probabilities) // ESTIMATED_ON)
    return probabilities[::step]


def measure(before: Answers, after: Answers | None, labels: Array, width: int) -> Measured:
    """Accuracy, calibration and mistakes on the images that have a label."""
    known = np.flatnonzero(labels >= 0)
    true, old = labels[known], before.classes[known]
    right = old == true
    found = Measured(
        len(known),
        share_right(right),
        None,
        None,
        calibration(before.confidence[known], right),
        None,
    )
    new = old if after is None else after.classes[known]
    if after is not None:
        still = new == true
        found.after, found.gain = share_right(still), gain_of(right, still)
        found.calibration_after = calibration(after.confidence[known], still)
        found.mended, found.harmed = int((still & ~right).sum()), int((right & ~still).sum())
        found.classes = class_changes(true, right, still, width)
    found.mistakes = mistakes(true, old, new, width)
    if width <= MATRIX:
        found.confusion_before = confusion(true, old, width)
        found.confusion_after = None if after is None else confusion(true, new, width)
    return found

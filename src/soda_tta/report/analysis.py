"""The numbers of one run's page: computed once, then shown as HTML and printed as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from soda_tta.box.price import Price
from soda_tta.judging.estimate import Estimate, NoEstimate, estimate_accuracy
from soda_tta.report.conditions import ConditionAnalysis, analyse_conditions
from soda_tta.report.labels import Labels
from soda_tta.report.predictions import (
    Calibration,
    ClassChange,
    Mistake,
    Predictions,
    Proportion,
    accuracy,
    accuracy_gain,
    calibration,
    class_changes,
    confusion,
    mistakes,
    summarise,
)
from soda_tta.report.record import RunRecord
from soda_tta.types import Array

ESTIMATED_ON = 100_000  # rows; more would not improve an estimate that is off by a few points
MATRIX = 20  # the most classes for which a confusion matrix is shown


@dataclass
class LabelledResults:
    """Results on the images that have a label."""

    images: int  # that have a label
    before: Proportion
    after: Proportion | None
    gain: Proportion | None
    calibration_before: Calibration
    calibration_after: Calibration | None
    corrected: int = 0  # wrong before, correct after
    harmed: int = 0  # correct before, wrong after
    classes: list[ClassChange] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    confusion_before: Array | None = None
    confusion_after: Array | None = None

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {
            "images": self.images,
            "before": asdict(self.before),
            "after": self.after and asdict(self.after),
            "gain": self.gain and asdict(self.gain),
            "corrected": self.corrected,
            "harmed": self.harmed,
            "calibration_error": {
                "before": self.calibration_before.error,
                "after": self.calibration_after and self.calibration_after.error,
            },
        }


@dataclass
class Analysis:
    """A run, its predictions, and its accuracy as measured or estimated."""

    record: RunRecord
    before: Predictions | None = None
    after: Predictions | None = None
    estimate_before: Estimate | None = None
    estimate_after: Estimate | None = None
    # Why there is no estimate, by moment; what is estimated is not in it.
    no_estimate: dict[str, str] = field(default_factory=dict)
    labelled: LabelledResults | None = None
    conditions: list[ConditionAnalysis] = field(default_factory=list)  # of mixed images
    class_names: list[str] = field(default_factory=list)
    price: Price | None = None

    @property
    def changed(self) -> int | None:
        """How many images have a different prediction after adapting."""
        if self.before is None or self.after is None:
            return None
        return int((self.before.classes != self.after.classes).sum())

    @property
    def is_estimated(self) -> bool:
        """Whether the accuracy before and after is estimated, not only bounded."""
        estimates = (self.estimate_before, self.estimate_after)
        return all(each is not None and not each.bound for each in estimates)

    @property
    def estimate_sentences(self) -> list[tuple[str, str]]:
        """What is known about the accuracy without labels, by moment; the same is said once."""
        estimates = {"before": self.estimate_before, "after": self.estimate_after}
        sentences = {name: each.sentence for name, each in estimates.items() if each is not None}
        sentences |= self.no_estimate
        if len(set(sentences.values())) == 1:
            return [("Accuracy without labels", next(iter(sentences.values())))]
        return [
            (f"{name.capitalize()} adapting", sentences[name])
            for name in estimates
            if name in sentences
        ]

    @property
    def cost(self) -> float | None:
        """What the run cost; None without a price, or if it needs what is not stored."""
        if self.price is None:
            return None
        record = self.record
        return self.price.cost(record.total_queries, calls=record.calls, seconds=record.seconds)

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON, for pipelines."""
        record = self.record
        predictions = {"before": self.before, "after": self.after}
        estimates = {"before": self.estimate_before, "after": self.estimate_after}
        return {
            "title": record.title,
            "method": record.card.get("method"),
            "images": record.count,
            "stopped": record.stopped,
            "queries": record.queries,
            "total_queries": record.total_queries,
            "cost": self.cost,
            "changed_answers": self.changed,
            "unreached_images": record.unreached,
            "mean_confidence": {
                moment: each and each.mean_confidence for moment, each in predictions.items()
            },
            "mutual_information": {
                moment: each and each.mutual_information for moment, each in predictions.items()
            },
            "estimated_accuracy": {
                moment: each and asdict(each) for moment, each in estimates.items()
            },
            "no_estimate": self.no_estimate,
            "accuracy": self.labelled and self.labelled.facts(),
            "verdict": record.verdict and record.verdict.facts(),
            "mixed": self._mixed_facts(),
            "missing": record.missing,
        }

    def _mixed_facts(self) -> dict[str, Any] | None:
        mixed = self.record.conditions
        if mixed is None or not self.conditions:
            return None
        return {
            "unfamiliar": mixed.unfamiliar,
            "conditions": [condition.facts() for condition in self.conditions],
        }


def analyse(
    record: RunRecord,
    labels: Labels | None = None,
    classes: tuple[str, ...] | None = None,
    price: Price | None = None,
) -> Analysis:
    """Compute the numbers of a run's page.

    `classes` are the names of the model's classes.
    """
    analysis = Analysis(record, price=price)
    if record.before is None:
        return analysis
    width = record.before.shape[1]
    analysis.class_names = _class_names(width, labels, classes)
    analysis.before = summarise(record.before)
    analysis.estimate_before = _estimate(analysis, "before", record.before)
    if record.after is not None:
        analysis.after = summarise(record.after)
        analysis.estimate_after = _estimate(analysis, "after", record.after)
    answered = len(record.before)
    if labels is not None and labels.known[:answered].any():
        analysis.labelled = measure(
            analysis.before, analysis.after, labels.values[:answered], width
        )
    analysis.conditions = analyse_conditions(
        record, None if labels is None else labels.values[:answered]
    )
    return analysis


def _estimate(analysis: Analysis, moment: str, probabilities: Array) -> Estimate | None:
    """The accuracy at one moment, as far as it can be estimated; else the reason is kept."""
    record = analysis.record
    estimate = estimate_accuracy(
        sample(probabilities), clean=record.clean, clean_accuracy=record.clean_accuracy
    )
    if isinstance(estimate, NoEstimate):
        analysis.no_estimate[moment] = estimate.sentence
        return None
    return estimate


def _class_names(width: int, labels: Labels | None, classes: tuple[str, ...] | None) -> list[str]:
    """Specified names, else the names the labels come with, else class numbers."""
    names = classes or (None if labels is None else labels.classes) or ()
    return [names[index] if index < len(names) else str(index) for index in range(width)]


def sample(probabilities: Array) -> Array:
    """All rows, or evenly spaced rows of a very large set."""
    step = -(-len(probabilities) // ESTIMATED_ON)
    return probabilities[::step]


def measure(
    before: Predictions, after: Predictions | None, labels: Array, width: int
) -> LabelledResults:
    """Accuracy, calibration and mistakes on the images that have a label (0 or more)."""
    labelled = np.flatnonzero(labels >= 0)
    true = labels[labelled]
    predicted_before = before.classes[labelled]
    correct_before = predicted_before == true
    results = LabelledResults(
        images=len(labelled),
        before=accuracy(correct_before),
        after=None,
        gain=None,
        calibration_before=calibration(before.confidence[labelled], correct_before),
        calibration_after=None,
    )
    predicted_after = predicted_before if after is None else after.classes[labelled]
    if after is not None:
        correct_after = predicted_after == true
        results.after = accuracy(correct_after)
        results.gain = accuracy_gain(correct_before, correct_after)
        results.calibration_after = calibration(after.confidence[labelled], correct_after)
        results.corrected = int((correct_after & ~correct_before).sum())
        results.harmed = int((correct_before & ~correct_after).sum())
        results.classes = class_changes(true, correct_before, correct_after, width)
    results.mistakes = mistakes(true, predicted_before, predicted_after, width)
    if width <= MATRIX:
        results.confusion_before = confusion(true, predicted_before, width)
        if after is not None:
            results.confusion_after = confusion(true, predicted_after, width)
    return results

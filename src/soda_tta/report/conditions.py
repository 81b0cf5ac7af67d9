"""The numbers of each condition of mixed images: share, verdict, accuracy, answers changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.judging.condition_result import ConditionResult
from soda_tta.judging.condition_table import ConditionRow, condition_rows
from soda_tta.judging.estimate import Estimate, NoEstimate, estimate_accuracy
from soda_tta.report.predictions import Proportion, accuracy
from soda_tta.report.record import RunRecord
from soda_tta.types import Array

UNKNOWN = "not known"  # shorter than the reason, which the page gives for all images


@dataclass(frozen=True)
class ConditionAnalysis:
    """One condition of a run.

    Parameters
    ----------
    row : what a person reads about it.
    result : its verdict and its adaptor.
    estimates : of the accuracy before and after, without labels; None where there is none.
    labelled : how many of its images have a label.
    measured : the true accuracy before and after; None where it is not known.
    """

    row: ConditionRow
    result: ConditionResult
    estimates: tuple[Estimate | None, Estimate | None]
    labelled: int
    measured: tuple[Proportion | None, Proportion | None]

    @property
    def estimated(self) -> tuple[str, str]:
        """The accuracy before and after, estimated without labels, in a few words."""
        before, after = (UNKNOWN if each is None else each.short for each in self.estimates)
        return before, after

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        moments = ("before", "after")
        estimates = [each and asdict(each) for each in self.estimates]
        measured = [each and asdict(each) for each in self.measured]
        return {
            **self.result.facts(),
            "share": self.row.share,
            "changed_answers": self.row.changed,
            "estimated_accuracy": dict(zip(moments, estimates, strict=True)),
            "labelled_images": self.labelled,
            "accuracy": dict(zip(moments, measured, strict=True)),
        }


def analyse_conditions(record: RunRecord, labels: Array | None) -> list[ConditionAnalysis]:
    """Every condition of a run, the most frequent first; empty if there is only one.

    Parameters
    ----------
    record : of the run.
    labels : true classes of its images, negative where unknown.
    """
    conditions = record.conditions
    if conditions is None or record.before is None:
        return []
    rows = condition_rows(conditions, record.before, record.after)
    moments = (record.before, record.after)
    found = []
    for number, (row, result) in enumerate(zip(rows, conditions, strict=True)):
        members = np.flatnonzero(conditions.members(number))
        own = np.zeros(0, int)
        if labels is not None:
            own = members[labels[members] >= 0]
        before, after = (_estimate(record, rows, members) for rows in moments)
        true_before, true_after = (_measured(rows, labels, own) for rows in moments)
        found.append(
            ConditionAnalysis(row, result, (before, after), len(own), (true_before, true_after))
        )
    return found


def _estimate(record: RunRecord, probabilities: Array | None, members: Array) -> Estimate | None:
    """The accuracy on some images, as far as it can be estimated without labels."""
    if probabilities is None or not len(members):
        return None
    estimate = estimate_accuracy(
        probabilities[members], clean=record.clean, clean_accuracy=record.clean_accuracy
    )
    return None if isinstance(estimate, NoEstimate) else estimate


def _measured(probabilities: Array | None, labels: Array | None, own: Array) -> Proportion | None:
    """The true accuracy on images that have a label."""
    if probabilities is None or labels is None or not len(own):
        return None
    return accuracy(probabilities[own].argmax(axis=1) == labels[own])

"""The page of several runs side by side: results, cost, and where they disagree."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.box.price import in_digits
from soda_tta.data import Images
from soda_tta.report import figures
from soda_tta.report.analysis import Analysis, LabelledResults
from soda_tta.report.examples import MOST, make_examples
from soda_tta.report.headline import headline, points
from soda_tta.report.labels import UNKNOWN, Labels
from soda_tta.report.page import Figure, render
from soda_tta.report.predictions import Predictions
from soda_tta.report.run_page import flattened

# The parts of the protocol cards that are compared.
COMPARED = ("soda_tta", "method", "settings", "seed", "budget", "images", "box", "versions")


def comparison_page(analyses: list[Analysis], labels: Labels | None, images: Images | None) -> str:
    """The HTML of several runs; `labels` are those of the first."""
    records = [analysis.record for analysis in analyses]
    return render(
        "comparison.html",
        title=" / ".join(record.title for record in records),
        analyses=analyses,
        headlines=[headline(analysis) for analysis in analyses],
        rows=_table_rows(analyses),
        agreement=_agreement(analyses),
        examples=_examples(analyses, labels, images),
        curves=_curves(analyses),
        adaptors=[
            (record.title, record.adaptor.describe()) for record in records if record.adaptor
        ],
        differences=_differences(analyses),
    )


def _table_rows(analyses: list[Analysis]) -> list[tuple[str, list[str]]]:
    """One row per fact, one column per run; facts that no run has are left out."""
    columns = [_column(analysis) for analysis in analyses]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [(name, [column.get(name, "") for column in columns]) for name in names]


def _column(analysis: Analysis) -> dict[str, str]:
    """The facts of one run as text."""
    record = analysis.record
    facts = {
        "method": str(record.card.get("method")),
        "images": f"{record.count:,}",
        "queries": f"{record.total_queries:,}",
        "queries per image": f"{record.total_queries / max(1, record.count):.4g}",
    }
    if analysis.cost is not None:
        facts["cost"] = in_digits(analysis.cost)
    if analysis.changed is not None:
        facts["predictions changed"] = f"{analysis.changed:,}"
    if analysis.labelled is not None:
        facts |= _labelled_facts(analysis.labelled)
    estimates = {"before": analysis.estimate_before, "after": analysis.estimate_after}
    for moment, estimate in estimates.items():
        if estimate is not None:
            facts[f"estimated accuracy {moment}"] = estimate.short
    if analysis.after is not None:
        facts["mean confidence after"] = f"{analysis.after.mean_confidence:.1%}"
        facts["mutual information after"] = f"{analysis.after.mutual_information:.3f}"
    if record.seconds is not None:
        facts["seconds"] = f"{record.seconds:.0f}"
    return facts


def _labelled_facts(labelled: LabelledResults) -> dict[str, str]:
    facts = {"true accuracy before": f"{labelled.before.value:.1%}"}
    if labelled.after and labelled.gain and labelled.calibration_after:
        gain = labelled.gain
        facts["true accuracy after"] = f"{labelled.after.value:.1%}"
        facts["gain in points (95% interval)"] = (
            f"{points(gain.value)} ({points(gain.low)} to {points(gain.high)})"
        )
        facts["calibration error after (ECE)"] = f"{labelled.calibration_after.error:.1%}"
    return facts


def _comparable_predictions(analyses: list[Analysis]) -> list[Predictions]:
    """The predictions after adapting; empty unless all runs have them for the same images."""
    fingerprints = {
        str(analysis.record.card.get("images", {}).get("fingerprint")) for analysis in analyses
    }
    after = [analysis.after for analysis in analyses if analysis.after is not None]
    return after if len(fingerprints) == 1 and len(after) == len(analyses) else []


def _agreement(analyses: list[Analysis]) -> list[list[float]]:
    """The share of images for which two runs predict the same class."""
    classes = [predictions.classes for predictions in _comparable_predictions(analyses)]
    return [[float((one == other).mean()) for other in classes] for one in classes]


def _examples(
    analyses: list[Analysis], labels: Labels | None, images: Images | None
) -> list[dict[str, Any]]:
    """The images the runs disagree about most, as each adaptor changes them."""
    after = _comparable_predictions(analyses)
    if images is None or not after:
        return []
    first = analyses[0]
    assert first.before is not None
    classes = np.stack([predictions.classes for predictions in after])
    confidence = np.stack([predictions.confidence for predictions in after])
    disagreeing = (classes != classes[0]).sum(axis=0)
    # most disagreement first, then the highest confidence
    order = np.lexsort((-confidence.min(axis=0), -disagreeing))
    chosen = order[disagreeing[order] > 0][:MOST]
    adaptors = {
        analysis.record.title: analysis.record.adaptor
        for analysis in analyses
        if analysis.record.adaptor is not None
    }
    titles = ["original", *(analysis.record.title for analysis in analyses)]
    rows = []
    for example in make_examples(first.record, images, chosen, adaptors):
        true = UNKNOWN if labels is None else int(labels.values[example.index])
        predictions = [
            (title, first.class_names[each.classes[example.index]], each.confidence[example.index])
            for title, each in zip(titles, [first.before, *after], strict=True)
        ]
        rows.append(
            {
                "example": example,
                "predictions": predictions,
                "true": None if true == UNKNOWN else first.class_names[true],
            }
        )
    return rows


def _curves(analyses: list[Analysis]) -> list[Figure]:
    histories = [
        figures.History(record.title, record.queries.get("select", 0), record.history)
        for record in (analysis.record for analysis in analyses)
        if record.history
    ]
    if not histories:
        return []
    return [
        Figure(
            figures.over_queries(
                histories, lambda step: step.mutual_information, "mutual information (nats)"
            ),
            "The mutual information of each step, over the queries used so far.",
        ),
        Figure(
            figures.over_queries(histories, lambda step: step.loss, "objective"),
            "The objective of each step. It compares only runs that have the same objective.",
        ),
    ]


def _differences(analyses: list[Analysis]) -> list[tuple[str, list[str]]]:
    """The entries in which the protocol cards differ."""
    cards = [
        dict(flattened({name: analysis.record.card.get(name) for name in COMPARED}))
        for analysis in analyses
    ]
    names = list(dict.fromkeys(name for card in cards for name in card))
    rows = [(name, [card.get(name, "") for card in cards]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]

"""The page of one run."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.data import Images
from soda_tta.judging.condition_table import unfamiliar_sentence
from soda_tta.masking import masked
from soda_tta.report import figures
from soda_tta.report.analysis import Analysis
from soda_tta.report.commands import deployment_commands, reproduce_command
from soda_tta.report.condition_pictures import adaptor_sections, condition_pictures
from soda_tta.report.examples import ALIKE, make_examples, most_changed
from soda_tta.report.headline import headline
from soda_tta.report.labels import UNKNOWN, Labels
from soda_tta.report.page import Figure, render
from soda_tta.report.predictions import ClassChange, Mistake, total_variation
from soda_tta.report.record import RunRecord
from soda_tta.types import Array

CLASSES_SHOWN = 8  # at most, among those that gained and among those that lost
FEWEST = 5  # labelled images of a class; with fewer, one image is 25 points or more


def run_page(analysis: Analysis, labels: Labels | None, images: Images | None) -> str:
    """The HTML of one run."""
    record = analysis.record
    changes = [] if analysis.labelled is None else analysis.labelled.classes
    return render(
        "run.html",
        title=record.title,
        record=record,
        analysis=analysis,
        headline=headline(analysis),
        shares=_class_shares(analysis),
        confusions=_confusions(analysis),
        gained=_gained(changes),
        lost=_lost(changes),
        small_classes=_small_classes(changes),
        mistakes=_repeated_mistakes(analysis),
        examples=_examples(analysis, labels, images),
        nothing_moved=_nothing_moved(record),
        alike=ALIKE,
        unfamiliar=_unfamiliar(record),
        pictures=condition_pictures(record, analysis.conditions, images),
        adaptors=adaptor_sections(record, images),
        answers=answers_of(record),
        curves=_curves(record),
        confidence=_confidence(analysis),
        # the section of the conditions shows what it says about them
        card=flattened({name: fact for name, fact in record.card.items() if name != "mixed"}),
        reproduce=reproduce_command(record),
        deployment=deployment_commands(record),
    )


def _unfamiliar(record: RunRecord) -> str | None:
    return None if record.conditions is None else unfamiliar_sentence(record.conditions.unfamiliar)


def _gained(changes: list[ClassChange]) -> list[ClassChange]:
    """The classes that gained most; `changes` are in descending order of gain."""
    gained = [change for change in changes if change.gain > 0 and change.images >= FEWEST]
    return gained[:CLASSES_SHOWN]


def _lost(changes: list[ClassChange]) -> list[ClassChange]:
    """The classes that lost most."""
    lost = [change for change in reversed(changes) if change.gain < 0 and change.images >= FEWEST]
    return lost[:CLASSES_SHOWN]


def _small_classes(changes: list[ClassChange]) -> str | None:
    """What the tables of classes leave out, as a sentence."""
    small = sum(change.images < FEWEST for change in changes)
    if not small:
        return None
    few = f"fewer than {FEWEST} labelled images"
    if small == len(changes):
        return f"Classes are not compared: each has {few}."
    return f"Classes with {few} are left out: {small:,} of {len(changes):,}."


def _repeated_mistakes(analysis: Analysis) -> list[Mistake]:
    """The mistakes that were made more than once; a single one says nothing about its classes."""
    mistakes = [] if analysis.labelled is None else analysis.labelled.mistakes
    return [mistake for mistake in mistakes if max(mistake.before, mistake.after) > 1]


def _class_shares(analysis: Analysis) -> Figure | None:
    if analysis.before is None or analysis.after is None or len(analysis.class_names) < 2:
        return None
    caption = (
        "How often each class is predicted. If the images contain all classes equally often, "
        "all shares should be equal."
    )
    svg = figures.class_shares(analysis.before, analysis.after, analysis.class_names)
    return Figure(svg, caption)


def _confusions(analysis: Analysis) -> list[tuple[str, list[list[tuple[int, float]]]]]:
    """Before and after: for each true class, counts and their shares of that class."""
    if analysis.labelled is None:
        return []
    matrices = {
        "Before": analysis.labelled.confusion_before,
        "After": analysis.labelled.confusion_after,
    }
    return [
        (moment, [_with_shares(row) for row in matrix])
        for moment, matrix in matrices.items()
        if matrix is not None
    ]


def _with_shares(row: Array) -> list[tuple[int, float]]:
    """Each count of a row with its share of the row."""
    total = max(1, int(row.sum()))
    return [(int(count), float(count) / total) for count in row]


def _nothing_moved(record: RunRecord) -> bool:
    """Whether every answer is the unadapted one, as in a run whose finding was refused."""
    if record.before is None or record.after is None:
        return False
    return bool(np.array_equal(record.before, record.after))


def _examples(
    analysis: Analysis, labels: Labels | None, images: Images | None
) -> list[dict[str, Any]]:
    """The images whose predictions changed most, with their predictions."""
    record = analysis.record
    if images is None or record.adaptor is None:
        return []
    if analysis.before is None or analysis.after is None:
        return []
    assert record.before is not None and record.after is not None
    before = analysis.before.classes
    after = analysis.after.classes
    harmed = None
    if labels is not None:
        true_classes = labels.values[: len(before)]
        harmed = (before == true_classes) & (after != true_classes)
    # a different class counts more than any change of the probabilities
    distance = total_variation(record.before, record.after) + (before != after)
    chosen = most_changed(distance, before, after, harmed)
    rows = []
    for example in make_examples(record, images, chosen, {"adapted": record.adaptor}):
        true = UNKNOWN if labels is None else int(labels.values[example.index])
        rows.append(
            {
                "example": example,
                "predictions": _predictions_of(analysis, example.index, true),
                "true": None if true == UNKNOWN else analysis.class_names[true],
            }
        )
    return rows


def _predictions_of(
    analysis: Analysis, index: int, true: int
) -> list[tuple[str, float, bool | None]]:
    """Class, confidence and correctness (None if unknown) of an image, before and after."""
    assert analysis.before is not None and analysis.after is not None
    rows = []
    for predictions in (analysis.before, analysis.after):
        predicted = predictions.classes[index]
        correct = None if true == UNKNOWN else bool(predicted == true)
        name = analysis.class_names[predicted]
        rows.append((name, float(predictions.confidence[index]), correct))
    return rows


def _curves(record: RunRecord) -> list[Figure]:
    """The objective and the mutual information of each step."""
    if not record.history:
        return []
    history = [figures.History("", record.queries.get("select", 0), record.history)]
    objective = "The objective of each step, which is minimised, over the queries used so far."
    if record.queries.get("tune"):
        # of the learning rates that were tried, the history holds only the one that was kept
        searched = record.queries["tune"] + record.queries.get("probe", 0)
        dropped = searched - sum(step.queries for step in record.history)
        objective += f" Another {dropped:,} queries went to learning rates that were dropped."
    information = (
        "The mutual information of each step. It is high if predictions are confident and all "
        "classes are predicted equally often."
    )
    return [
        Figure(figures.over_queries(history, lambda step: step.loss, "objective"), objective),
        Figure(
            figures.over_queries(
                history, lambda step: step.mutual_information, "mutual information (nats)"
            ),
            information,
        ),
    ]


def _confidence(analysis: Analysis) -> list[Figure]:
    """The confidence histogram, and the reliability diagram if there are labels."""
    if analysis.before is None:
        return []
    histogram = Figure(
        figures.confidence_histogram(analysis.before, analysis.after),
        "The confidence of the predictions. Higher confidence does not mean higher accuracy.",
    )
    if analysis.labelled is None:
        return [histogram]
    reliability = Figure(
        figures.reliability(
            analysis.labelled.calibration_before, analysis.labelled.calibration_after
        ),
        "Accuracy against confidence, in 15 bins. Below the dotted line the model is "
        "over-confident. ECE is the mean gap, weighted by the number of images.",
    )
    return [histogram, reliability]


def flattened(card: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows of a table, without secrets.

    >>> flattened({"method": "soda", "settings": {"q": 5, "lr": None}})
    [('method', 'soda'), ('settings.q', '5'), ('settings.lr', 'none')]
    """
    rows: list[tuple[str, str]] = []
    for name, value in card.items():
        if isinstance(value, dict):
            rows += flattened(value, f"{prefix}{name}.")
            continue
        text = ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
        rows.append((prefix + name, "none" if value is None else masked(text)))
    return rows


def answers_of(record: RunRecord) -> dict[str, str | None] | None:
    """How responses become answers, and what was stated; None if the responses are the answers."""
    if record.adaptor is None or record.adaptor.answering.is_plain:
        return None
    stated = (record.card.get("answering") or {}).get("prior")
    return {"does": record.adaptor.answering.describe(), "prior": stated}

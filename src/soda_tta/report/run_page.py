"""The page of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from soda_tta.adaptors import Identity
from soda_tta.data import Images
from soda_tta.engine.events import Step
from soda_tta.report import figures
from soda_tta.report.account import Account
from soda_tta.report.answers import moved
from soda_tta.report.commands import deploy, reproduce, without_password
from soda_tta.report.findings import Findings
from soda_tta.report.labels import Labels
from soda_tta.report.page import render
from soda_tta.report.response import measure
from soda_tta.report.strip import ALIKE, make_strip, most_changed
from soda_tta.report.verdict_words import headline
from soda_tta.report.words import describe_response

FEW = 8  # classes shown among those that gained, and among those that lost


@dataclass(frozen=True)
class Figure:
    """A plot and the sentence below it."""

    svg: Markup
    caption: str


def run_page(found: Findings, labels: Labels | None, images: Images | None) -> str:
    """HTML of one run: verdict, accuracy, changed images, the adaptor, curves, confidence, card and commands."""
    account = found.account
    return render(
        "run.html",
        title=account.title,
        account=account,
        found=found,
        headline=headline(found),
        shares=_shares(found),
        confusions=_confusions(found),
        gained=[change for change in _classes(found) if change.gain > 0][:FEW],
        lost=[change for change in reversed(_classes(found)) if change.gain < 0][:FEW],
        strip=_strip(found, labels, images),
        alike=ALIKE,
        adaptor=_adaptor(account, images),
        curves=_curves(account),
        confidence=_confidence(found),
        card=flattened(account.card),
        reproduce=reproduce(account),
        deploy=deploy(account),
    )


def _shares(found: Findings) -> Figure | None:
    if found.before is None or found.after is None or len(found.class_names) < 2:
        return None
    caption = "How often each class is given. With as many images of every class, all shares would be alike."
    return Figure(figures.class_shares(found.before, found.after, found.class_names), caption)


def _classes(found: Findings) -> list[Any]:
    return [] if found.measured is None else found.measured.classes


def _confusions(found: Findings) -> list[tuple[str, list[list[tuple[int, float]]]]]:
    """Before and after: for each true class, counts and their shares of that class."""
    measured = found.measured
    if measured is None:
        return []
    tables = [("before", measured.confusion_before), ("after", measured.confusion_after)]
    return [
        (name, [[(int(n), float(n) / max(1, int(row.sum()))) for n in row] for row in matrix])
        for name, matrix in tables
        if matrix is not None
    ]


def _strip(found: Findings, labels: Labels | None, images: Images | None) -> list[dict[str, Any]]:
    account = found.account
    if images is None or found.before is None or found.after is None or account.adaptor is None:
        return []
    assert account.before is not None and account.after is not None
    old, new = found.before.classes, found.after.classes
    harmed = (
        None
        if labels is None
        else (old == labels.values[: len(old)]) & (new != labels.values[: len(old)])
    )
    distance = moved(account.before, account.after) + (
        old != new
    )  # another class before a mere change of mind
    chosen = most_changed(distance, old, new, harmed)
    rows = []
    for picture in make_strip(account, images, chosen, {"adapted": account.adaptor}):
        true = -1 if labels is None else int(labels.values[picture.index])
        given = [
            (a.classes[picture.index], a.confidence[picture.index])
            for a in (found.before, found.after)
        ]
        answers = [
            (found.class_names[c], float(sure), None if true < 0 else bool(c == true))
            for c, sure in given
        ]
        rows.append(
            {
                "picture": picture,
                "answers": answers,
                "true": None if true < 0 else found.class_names[true],
            }
        )
    return rows


def _adaptor(account: Account, images: Images | None) -> dict[str, Any] | None:
    """What it does, in its own words and as measured; None if there is none."""
    if account.adaptor is None or isinstance(account.adaptor, Identity):
        return None
    response = measure(account.adaptor, account.size, images)
    on = f"{response.pictures} {'pictures drawn for this purpose' if response.drawn else 'images of this run'}"
    own = (
        ""
        if response.common
        else " This adaptor looks at each image and gives it a curve of its own."
    )
    tone = (
        f"Tone: for each pixel value, the mean of what it becomes, on {on}; dotted: unchanged.{own}"
    )
    frequency = (
        "Detail: how much of a faint grating laid over such pictures comes out again, from coarse (left) to fine "
        "(right); 1 passes unchanged, less is smoothed away, more is sharpened."
    )
    return {
        "words": account.adaptor.describe(),
        "measured": describe_response(response),
        "on": on,
        "figures": [
            Figure(figures.tone_curve(response), tone),
            Figure(figures.frequency_response(response), frequency),
        ],
    }


def _curves(account: Account) -> list[Figure]:
    if not account.history:
        return []
    history: list[tuple[str, int, list[Step]]] = [
        ("", account.queries.get("select", 0), account.history)
    ]
    note = ""
    if tuned := account.queries.get("tune", 0):
        rivals = (
            tuned + account.queries.get("probe", 0) - sum(step.queries for step in account.history)
        )
        note = f" {rivals:,} more queries went into rivals that were given up."
    loss = (
        "The objective of each step (what is minimised), over the queries spent until then." + note
    )
    information = (
        "Mutual information of each step: high when answers are sure, and classes are given evenly."
    )
    return [
        Figure(figures.over_queries(history, "loss", "objective"), loss),
        Figure(
            figures.over_queries(history, "mutual_information", "mutual information (nats)"),
            information,
        ),
    ]


def _confidence(found: Findings) -> list[Figure]:
    if found.before is None:
        return []
    shown = [
        Figure(
            figures.confidence_histogram(found.before, found.after),
            "How sure the model is of its answers. Surer is not the same as right.",
        )
    ]
    if found.measured is not None:
        shown.append(
            Figure(
                figures.reliability(
                    found.measured.calibration_before, found.measured.calibration_after
                ),
                "How right it is when it is so sure, in 15 bins; below the dotted line it is over-confident. "
                "ECE: the mean gap, weighted by the number of images.",
            )
        )
    return shown


def flattened(card: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows of a table, without passwords."""
    rows: list[tuple[str, str]] = []
    for name, value in card.items():
        if isinstance(value, dict):
            rows += flattened(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            rows.append((prefix + name, without_password(", ".join(map(str, value)) or "none")))
        else:
            rows.append((prefix + name, "none" if value is None else without_password(str(value))))
    return rows

"""Several runs side by side: what each reached, at what price, and where they disagree."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.data import Images
from soda_tta.report import figures
from soda_tta.report.findings import Findings
from soda_tta.report.labels import Labels
from soda_tta.report.page import render
from soda_tta.report.run_page import Figure, flattened
from soda_tta.report.strip import MOST, make_strip
from soda_tta.report.verdict_words import headline, points


def comparison_page(
    found: list[Findings], labels: list[Labels | None], images: Images | None
) -> str:
    """HTML of several runs."""
    return render(
        "comparison.html",
        title=" / ".join(each.account.title for each in found),
        found=found,
        headlines=[headline(each) for each in found],
        rows=_rows(found),
        agreement=_agreement(found),
        strip=_strip(found, labels[0], images),
        curves=_curves(found),
        adaptors=[
            (each.account.title, each.account.adaptor.describe())
            for each in found
            if each.account.adaptor
        ],
        differences=_differences(found),
    )


def _rows(found: list[Findings]) -> list[tuple[str, list[str]]]:
    """The table: a row a fact, a column a run; facts no run has are left out."""
    columns = [_facts(each) for each in found]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return [(name, [column.get(name, "") for column in columns]) for name in names]


def _facts(found: Findings) -> dict[str, str]:
    account, measured = found.account, found.measured
    facts = {
        "method": str(account.card.get("method")),
        "images": f"{account.count:,}",
        "queries": f"{account.total_queries:,}",
        "queries an image": f"{account.total_queries / max(1, account.count):.4g}",
    }
    if found.cost is not None:
        facts["cost"] = f"{found.cost:,.2f}"
    if found.changed is not None:
        facts["answers changed"] = f"{found.changed:,}"
    if measured is not None:
        facts["true accuracy before"] = f"{measured.before.value:.1%}"
    if measured is not None and measured.after and measured.gain and measured.calibration_after:
        gain = measured.gain
        facts["true accuracy after"] = f"{measured.after.value:.1%}"
        facts["gain in points, 95%"] = (
            f"{points(gain.value)} ({points(gain.low)} to {points(gain.high)})"
        )
        facts["calibration error after (ECE)"] = f"{measured.calibration_after.error:.1%}"
    for moment, guess in (("before", found.estimate_before), ("after", found.estimate_after)):
        if guess is not None:
            most = "at most " if guess.bound else ""
            facts[f"estimated accuracy {moment}"] = (
                f"{most}{guess.accuracy:.1%} ({guess.low:.0%} to {guess.high:.0%})"
            )
    if found.after is not None:
        facts["mean confidence after"] = f"{found.after.mean_confidence:.1%}"
        facts["mutual information after"] = f"{found.after.mutual_information:.3f}"
    if account.seconds is not None:
        facts["seconds"] = f"{account.seconds:.0f}"
    return facts


def _same_images(found: list[Findings]) -> bool:
    """Whether all runs answered the same images, so that they can be compared one by one."""
    prints = {str(each.account.card.get("images", {}).get("fingerprint")) for each in found}
    return len(prints) == 1 and all(each.after is not None for each in found)


def _agreement(found: list[Findings]) -> list[list[float]]:
    """The share of images two runs give the same class."""
    if not _same_images(found):
        return []
    given = [each.after.classes for each in found if each.after is not None]
    return [[float((one == other).mean()) for other in given] for one in given]


def _strip(
    found: list[Findings], labels: Labels | None, images: Images | None
) -> list[dict[str, Any]]:
    """The images the runs disagree about most, as each adaptor makes them."""
    if images is None or not _same_images(found):
        return []
    given = np.stack([each.after.classes for each in found if each.after is not None])
    sure = np.stack([each.after.confidence for each in found if each.after is not None])
    different = (given != given[0]).sum(axis=0)
    order = np.lexsort((-sure.min(axis=0), -different))  # most opinions first, then the surest ones
    chosen = order[different[order] > 0][:MOST]
    adaptors = {
        each.account.title: each.account.adaptor
        for each in found
        if each.account.adaptor is not None
    }
    names, before = found[0].class_names, found[0].before
    assert before is not None
    rows = []
    for picture in make_strip(found[0].account, images, chosen, adaptors):
        index = picture.index
        true = -1 if labels is None else int(labels.values[index])
        answers = [("as it is", names[before.classes[index]], float(before.confidence[index]))]
        for each, classes, confidence in zip(found, given[:, index], sure[:, index], strict=True):
            answers.append((each.account.title, names[classes], float(confidence)))
        rows.append(
            {"picture": picture, "answers": answers, "true": None if true < 0 else names[true]}
        )
    return rows


def _curves(found: list[Findings]) -> list[Figure]:
    histories = [
        (each.account.title, each.account.queries.get("select", 0), each.account.history)
        for each in found
        if each.account.history
    ]
    if not histories:
        return []
    return [
        Figure(
            figures.over_queries(histories, "mutual_information", "mutual information (nats)"),
            "Mutual information of each step, over the queries spent until then.",
        ),
        Figure(
            figures.over_queries(histories, "loss", "objective"),
            "The objective of each step. Only runs with the same objective can be compared by it.",
        ),
    ]


def _differences(found: list[Findings]) -> list[tuple[str, list[str]]]:
    """What the cards do not agree on."""
    cards = [
        dict(flattened({name: each.account.card.get(name) for name in COMPARED})) for each in found
    ]
    names = list(dict.fromkeys(name for card in cards for name in card))
    rows = [(name, [card.get(name, "") for card in cards]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


COMPARED = ("soda_tta", "method", "settings", "seed", "budget", "images", "box", "versions")

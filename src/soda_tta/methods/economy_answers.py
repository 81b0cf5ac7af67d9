"""The answers of soda-e: which further views are safe to average, and the stated class prior."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from soda_tta.adaptors.answering import VIEWS, moved
from soda_tta.engine.work import Work
from soda_tta.errors import BudgetError
from soda_tta.judging.view_check import objection
from soda_tta.methods.answer_settings import CHECKED, AnswerSettings
from soda_tta.methods.method import Outcome
from soda_tta.randomness import RandomStream, generator
from soda_tta.types import Array

SAFE = "shift"  # keeps the class of any image


class Shown(NamedTuple):
    """Images that no search used, with responses to them as they are answered, and shifted."""

    places: Array
    plain: Array
    shifted: Array


def with_answers(method: AnswerSettings, work: Work, outcome: Outcome) -> Outcome:
    """An outcome with the views that proved safe on unseen images, and the stated prior."""
    if outcome.stopped == "interrupted":
        return outcome
    outcome = replace(outcome, prior=method.shares(work))
    names = tuple(VIEWS)[: method.views_within(len(work.images), work.meter.limit) - 1]
    if not names:
        return outcome
    if not affordable(work, outcome, len(names)):
        text = "The budget does not cover further views: the mirror image is not used."
        return replace(outcome, notices=(*outcome.notices, text))
    try:
        return with_views(work, outcome, names)
    except BudgetError:
        text = "Lost requests used up the budget for further views; each answer has one view."
        return replace(outcome, notices=(*outcome.notices, text))


def affordable(work: Work, outcome: Outcome, views: int) -> bool:
    """Whether what is left pays for the answers that are missing and for so many further views."""
    left = work.meter.left
    if left is None:
        return True
    count = len(work.images)
    missing = 0 if outcome.probabilities is not None else count
    if outcome.known is not None:
        missing = int(np.isnan(outcome.known[:, 0]).sum())
    shifted = 0 if judged_images(work, outcome) else min(count, CHECKED)
    return left >= missing + views * count + shifted


def with_views(work: Work, outcome: Outcome, names: tuple[str, ...]) -> Outcome:
    """The outcome with those views that are safe, and the responses to them that are known."""
    shown = images_shown(work, outcome)
    views: dict[str, Array] = {}
    for name in names:
        if name == SAFE:
            views[name] = placed(work, shown.places, shown.shifted)
            continue
        checked = part_of(shown, CHECKED, work.seed)
        box = work.asking("view")
        rows = box(VIEWS[name](outcome.adaptor(work.images[checked.places])))
        text = objection(name, checked.plain, checked.shifted, rows)
        if text is None:
            views[name] = placed(work, checked.places, rows)
        else:
            outcome = replace(outcome, notices=(*outcome.notices, text))
    return replace(outcome, views=views)


def images_shown(work: Work, outcome: Outcome) -> Shown:
    """The images that the verdict was based on; without one, some images, shifted now."""
    parts = judged_images(work, outcome)
    if parts:
        return Shown(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    random = generator(work.seed, RandomStream.SPLIT, len(work.images))
    places = np.sort(random.permutation(len(work.images))[:CHECKED])
    shifted = work.asking("view")(moved(outcome.adaptor(work.images[places])))
    return Shown(places, work.before[places], shifted)


def judged_images(work: Work, outcome: Outcome) -> list[Shown]:
    """The images that verdicts were based on, as they are answered now."""
    if outcome.conditions is not None:
        results = [
            (each.candidate, each.adopted, outcome.conditions.members(number))
            for number, each in enumerate(outcome.conditions)
        ]
    else:
        adopted = outcome.verdict is not None and outcome.verdict.adopt
        results = [(outcome.candidate, adopted, np.full(len(work.images), True))]
    parts = []
    for candidate, adopted, own in results:
        if candidate is None:
            continue
        here = own[candidate.judged]  # joining may have moved an image to another condition
        plain = candidate.after if adopted else work.before[candidate.judged]
        shifted = candidate.moved_after if adopted else candidate.moved_before
        parts.append(Shown(candidate.judged[here], plain[here], shifted[here]))
    return [part for part in parts if len(part.places)]


def part_of(shown: Shown, most: int, seed: int) -> Shown:
    """At most so many of the images, chosen at random."""
    order = generator(seed, RandomStream.SPLIT, len(shown.places)).permutation(len(shown.places))
    chosen = order[:most][np.argsort(shown.places[order[:most]])]
    return Shown(*(array[chosen] for array in shown))


def placed(work: Work, places: Array, rows: Array) -> Array:
    """Rows at their places among all images; NaN elsewhere."""
    everything: Array = np.full(work.before.shape, np.nan, np.float32)
    everything[places] = rows
    return everything

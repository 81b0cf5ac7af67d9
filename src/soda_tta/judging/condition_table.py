"""The conditions of a run as a table: the same rows in a terminal, a notebook, a report, JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from soda_tta.judging.condition_result import ConditionResult
from soda_tta.judging.condition_results import ConditionResults
from soda_tta.types import Array
from soda_tta.wording import counted

HEADER = ("condition", "share", "verdict", "answers changed", "what is done")
ADOPTED, LEFT = "adopted", "left as they are"
NOT_BETTER = "nothing: what was found is not clearly better"
NOTHING_HELPED = "nothing: no change helped"


class ConditionRow(NamedTuple):
    """One condition in words and numbers.

    Parameters
    ----------
    words : what its images look like.
    share : of all images, from 0 to 1.
    verdict : "adopted" or "left as they are".
    changed : images with another class than before; None if not known yet.
    does : what is done to its images.
    """

    words: str
    share: float
    verdict: str
    changed: int | None
    does: str

    def cells(self) -> tuple[str, ...]:
        """The texts of a row, below `HEADER`."""
        changed = "not known yet" if self.changed is None else f"{self.changed:,}"
        return (self.words, f"{self.share:.0%}", self.verdict, changed, self.does)


def condition_rows(
    conditions: ConditionResults, before: Array, after: Array | None
) -> list[ConditionRow]:
    """One row per condition, the most frequent first.

    Parameters
    ----------
    conditions : of the run.
    before, after : probabilities of all images; `after` is None if the run was interrupted.
    """
    return [
        ConditionRow(
            words=result.words,
            share=result.images / len(before),
            verdict=ADOPTED if result.adopted else LEFT,
            changed=changed_answers(before, after, conditions.members(number)),
            does=what_is_done(result),
        )
        for number, result in enumerate(conditions)
    ]


def what_is_done(result: ConditionResult) -> str:
    """What is done to the images of a condition, or why nothing is."""
    if result.adopted:
        return result.adaptor.describe()
    return NOTHING_HELPED if result.candidate is None else NOT_BETTER


def changed_answers(before: Array, after: Array | None, members: Array) -> int | None:
    """How many of some images have another class than before."""
    if after is None:
        return None
    return int((before[members].argmax(axis=1) != after[members].argmax(axis=1)).sum())


def unfamiliar_sentence(count: int) -> str | None:
    """How many images are unlike all conditions; None if there is none.

    >>> unfamiliar_sentence(2)
    '2 images are unlike all conditions and stay as they are.'
    """
    if not count:
        return None
    verbs = "is unlike all conditions and stays as it is"
    if count > 1:
        verbs = "are unlike all conditions and stay as they are"
    return f"{counted(count, 'image')} {verbs}."


def mixed_facts(conditions: ConditionResults, before: Array, after: Array | None) -> dict[str, Any]:
    """What a run stores about its conditions, with the answers that changed, as plain JSON."""
    facts = conditions.facts()
    rows = condition_rows(conditions, before, after)
    for each, row in zip(facts["conditions"], rows, strict=True):
        each |= {"share": float(np.round(row.share, 4)), "changed_answers": row.changed}
    return facts

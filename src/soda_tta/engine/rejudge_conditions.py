"""Judge once more what a run over several conditions has found: each condition by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from soda_tta.adaptors import Adaptor, Answering
from soda_tta.adaptors.answering import weighted
from soda_tta.engine.class_matching import unmatched
from soda_tta.engine.run import Run
from soda_tta.engine.stated_prior import UNKNOWN, shares_of
from soda_tta.judging.condition_results import ConditionResults
from soda_tta.judging.verdict import Verdict
from soda_tta.objectives import class_weights
from soda_tta.types import Array

JudgeOne = Callable[[Run, Array, float], Verdict | None]


def judged_by_condition(run: Run, judge: JudgeOne, level: float) -> Run:
    """The run with a new verdict for each condition that has a candidate.

    Parameters
    ----------
    run : a run over several conditions.
    judge : called with the run as if it had only this condition, which images belong to it, and
        the accepted rate of wrong adoptions; returns the new verdict.
    level : the accepted rate for all conditions together, which is divided evenly.
    """
    conditions = run.conditions
    assert conditions is not None
    tested = max(1, sum(result.candidate is not None for result in conditions))
    verdicts: list[Verdict | None] = []
    for number, result in enumerate(conditions):
        if result.candidate is None:
            verdicts.append(result.verdict)
            continue
        alone = replace(run, conditions=None, candidate=result.candidate, verdict=result.verdict)
        verdicts.append(judge(alone, conditions.members(number), level / tested))
    return recomposed(run, conditions.with_verdicts(verdicts))


def with_answers(run: Run, adaptor: Adaptor, rows: Array, unreached: int) -> Run:
    """The run with another adaptor and other answers, matched to its prior if it has one.

    Parameters
    ----------
    adaptor : what is deployed now; it has the views of the run.
    rows : the responses, one per image, as the model returned them.
    unreached : how many images were never adapted.
    """
    views = run.adaptor.answering.views
    shares = shares_of(str(run.card.settings.get("prior", UNKNOWN)), rows.shape[1])
    weights = None if shares is None else class_weights(rows, shares)
    return replace(
        run,
        adaptor=adaptor.answered(Answering(views, weights)),
        after=weighted(rows, weights).astype(np.float32),
        unreached=unreached,
    )


def recomposed(run: Run, conditions: ConditionResults) -> Run:
    """The run as it follows from other verdicts; images never adapted keep their answer."""
    earlier = list(run.earlier_verdicts)
    if run.verdict is not None:
        earlier.append(run.verdict)
    before = run.before
    after = conditions.known_answers(before)
    missing = np.isnan(after[:, 0])
    assert run.conditions is not None
    answers = None if run.after is None else unmatched(run.after, run.adaptor.answering.weights)
    for number, (old, new) in enumerate(zip(run.conditions, conditions, strict=True)):
        if old.adopted and new.adopted and answers is not None:
            own = conditions.members(number)
            after[own] = answers[own]
            missing[own] = False
    after[missing] = before[missing]
    judged = replace(
        run, conditions=conditions, verdict=conditions.verdict, earlier_verdicts=earlier
    )
    return with_answers(judged, conditions.adaptor, after, int(missing.sum()))

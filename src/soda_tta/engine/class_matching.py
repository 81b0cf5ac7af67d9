"""The last step of a run: answers matched to a stated class prior, and a check of the statement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Answering
from soda_tta.adaptors.answering import weighted
from soda_tta.engine.events import Listener, Notice
from soda_tta.judging.prior_check import contradiction
from soda_tta.methods.method import Outcome
from soda_tta.objectives import class_weights
from soda_tta.types import Array


def card_entry(answering: Answering, prior: str) -> dict[str, Any] | None:
    """What the protocol card says about answers; None if they are the model's responses.

    Parameters
    ----------
    answering : of the adaptor of the run.
    prior : the setting.
    """
    if answering.is_plain:
        return None
    weights = answering.weights
    limits = None if weights is None else [float(weights.min()), float(weights.max())]
    stated = None if weights is None else prior
    return {"views": ["image", *answering.views], "prior": stated, "weights": limits}


def unmatched(rows: Array, weights: Array | None) -> Array:
    """Answers as they were before they were multiplied by class weights."""
    if weights is None:
        return rows
    inverse = np.divide(1, weights, out=np.zeros_like(weights), where=weights > 0)
    return weighted(rows, inverse).astype(np.float32)


def matched(rows: Array, outcome: Outcome, tell: Listener) -> tuple[Array, Outcome]:
    """The answers matched to the prior, and the outcome with an adaptor that answers like this.

    Parameters
    ----------
    rows : the mean responses to all views of all images.
    outcome : with the stated prior, if there is one.
    tell : receives a notice if the answers contradict the prior.
    """
    views = tuple(outcome.views)
    if outcome.prior is None:
        return rows, replace(outcome, adaptor=outcome.adaptor.answered(Answering(views)))
    weights = class_weights(rows, outcome.prior)
    text = contradiction(rows, outcome.prior)
    if text is not None:
        tell(Notice(text))
    answers = weighted(rows, weights).astype(np.float32)
    return answers, replace(outcome, adaptor=outcome.adaptor.answered(Answering(views, weights)))

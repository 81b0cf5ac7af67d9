"""Whether what a method returned can be used, and whose mistake an error in it is."""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace

import numpy as np

from soda_tta.adaptors import Identity
from soda_tta.errors import MethodError, SodaError
from soda_tta.methods.method import Method, Outcome
from soda_tta.types import Array

SUM_TOLERANCE = 1e-2  # of a row of probabilities


def mistake_in(method: Method, error: Exception) -> MethodError | None:
    """A mistake in a user's own method as an error that names its line; None for other errors."""
    module = type(method).__module__
    if isinstance(error, SodaError) or module.startswith("soda_tta."):
        return None
    trace = traceback.extract_tb(error.__traceback__)
    file = getattr(sys.modules.get(module), "__file__", None)
    place = next((frame for frame in reversed(trace) if frame.filename == file), trace[-1])
    text = f"{type(error).__name__}: {error}".rstrip(": .")
    return MethodError(f"{method.name} raised {text} ({place.filename}:{place.lineno}).")


def checked(method: Method, outcome: Outcome, before: Array) -> Outcome:
    """The outcome with its probabilities as float32; raise MethodError if they cannot be used."""
    if not isinstance(outcome, Outcome):
        raise MethodError(f"{method.name} returned no Outcome; `adapt` must return one.")
    if outcome.probabilities is None:
        if isinstance(outcome.adaptor, Identity) and outcome.stopped != "interrupted":
            raise MethodError(
                f"{method.name} returned no answers; `answer` returns probabilities, `adapt` an "
                "Outcome with probabilities or an adaptor."
            )
        return outcome
    try:
        rows = np.asarray(outcome.probabilities, np.float32)
    except (TypeError, ValueError) as error:
        raise MethodError(f"{method.name} did not return an array of numbers: {error}") from error
    if rows.shape != before.shape or not rows.shape[1]:
        raise MethodError(
            f"{method.name} returned an array of shape {rows.shape}; it must be {before.shape}: "
            "one row of probabilities per image."
        )
    if not (np.isfinite(rows).all() and rows.min() >= 0):
        raise MethodError(f"{method.name} returned NaN or negative probabilities.")
    sums = rows.sum(axis=1)
    if np.abs(sums - 1).max() > SUM_TOLERANCE:
        worst = sums[np.abs(sums - 1).argmax()]
        raise MethodError(f"{method.name} returned rows that sum to {worst:.4g}, not to 1.")
    return replace(outcome, probabilities=rows)

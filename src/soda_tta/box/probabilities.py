"""Check what a model returns, and turn it into rows of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.box.top_classes import are_ranked
from soda_tta.errors import BoxError
from soda_tta.types import Array

PARTIAL_EXCESS = 0.05  # values rounded to two digits may also sum to more than 1
ROW_SUM_TOLERANCE = 1e-2  # half-precision models and services that print three digits stay inside
RANKED = (
    "the model returned rows that all descend: its columns are the ranks of its top classes, not "
    "classes. Return one column per class; an ONNX file may also return the index of each class in "
    "a second output."
)
NEGATIVE_TOLERANCE = 1e-6  # rounding below zero


def check_probabilities(
    output: Any, rows: int, classes: int | None, logits: bool, partial: bool = False
) -> Array:
    """The output of a model as float32 probabilities, or a `BoxError` that says what is wrong.

    Parameters
    ----------
    output : array
        What the model returned.
    rows : int
        Number of images in the request.
    classes : int or None
        Number of classes in earlier responses; None if there was none.
    logits : bool
        The output is logits: apply the softmax.
    partial : bool, default False
        Rows may sum to less than 1; see `complete_rows`.

    Examples
    --------
    >>> check_probabilities([[0.25, 0.75]], 1, None, logits=False)
    array([[0.25, 0.75]], dtype=float32)
    """
    output = _as_rows(np.asarray(output), rows, classes)
    with np.errstate(over="ignore"):  # a value that does not fit becomes infinite: refused below
        output = output.astype(np.float32, copy=False)
    if not np.isfinite(output).all():
        row = int(np.flatnonzero(~np.isfinite(output).all(axis=1))[0])
        raise BoxError(
            f"the model returned NaN or infinity (first in row {row}); "
            "check its normalisation: mean, std and pixel_range."
        )
    if logits:
        return softmax(output)
    sums = output.sum(axis=1, dtype=np.float64)
    if output.min() >= 0 and are_ranked(output):
        raise BoxError(RANKED)
    if partial and output.min() >= 0 and sums.max() <= 1 + PARTIAL_EXCESS:
        return complete_rows(output)
    _check_sums(sums, float(output.min()))
    clipped: Array = np.clip(output, 0, 1)
    return clipped


def _as_rows(output: Array, rows: int, classes: int | None) -> Array:
    """Check type and shape: one row of at least two numbers per image."""
    if output.dtype.kind not in "fiu":
        raise BoxError(
            f"the model returned {output.dtype} values; probabilities are numbers. "
            "Choose its output by name."
        )
    if output.ndim > 2 and all(extent == 1 for extent in output.shape[2:]):
        output = output.reshape(output.shape[:2])
    if output.ndim != 2:
        raise BoxError(
            f"the model returned an array of shape {output.shape} for {rows} images; "
            f"expected ({rows}, classes). Choose its output by name, "
            "or wrap it in a function that returns one row per image."
        )
    if len(output) != rows:
        raise BoxError(
            f"the model returned {len(output)} rows for {rows} images; "
            "it must return one row per image."
        )
    if classes is not None and output.shape[1] != classes:
        raise BoxError(
            f"the model returned {output.shape[1]} classes; earlier it returned {classes}."
        )
    if output.shape[1] < 2:
        raise BoxError(
            f"the model returned {output.shape[1]} class; a classifier has at least two."
        )
    return output


def _check_sums(sums: Array, lowest: float) -> None:
    """Refuse rows that are not probabilities, with the option that may explain them."""
    worst = float(sums[np.argmax(np.abs(sums - 1))])
    negative = lowest < -NEGATIVE_TOLERANCE
    if not negative and abs(worst - 1) <= ROW_SUM_TOLERANCE:
        return
    problem = f"contain negative values ({lowest:.4g})" if negative else f"sum to {worst:.4g}"
    remedy = "if these are logits, pass logits=True"
    if lowest >= 0 and worst < 1 + PARTIAL_EXCESS:
        remedy += "; if these are only the top classes or rounded values, pass partial=True"
    raise BoxError(f"the model returned rows that {problem}; {remedy}.")


def complete_rows(rows: Array) -> Array:
    """Make rows sum to 1: the missing probability is shared by the classes that are absent.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities; 0 where the model returned none.

    Examples
    --------
    >>> complete_rows(np.array([[0.5, 0.3, 0.0, 0.0]], np.float32)).round(3)
    array([[0.5, 0.3, 0.1, 0.1]], dtype=float32)
    """
    absent = rows == 0
    missing = np.clip(1 - rows.sum(axis=1, keepdims=True), 0, None)
    shared = rows + absent * missing / np.maximum(absent.sum(axis=1, keepdims=True), 1)
    result: Array = (shared / shared.sum(axis=1, keepdims=True)).astype(np.float32)
    return result


def without_background(rows: Array) -> Array:
    """Rows without their class 0, the background, that sum to 1 again.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities. A row that is all background becomes uniform.

    Examples
    --------
    >>> without_background(np.array([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0]]))
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """
    if rows.shape[1] < 3:
        raise BoxError(
            f"the model returned {rows.shape[1]} classes; without a background class 0 fewer than "
            "two are left: leave out background=True."
        )
    others = rows[:, 1:]
    sums = others.sum(axis=1, keepdims=True)
    uniform = np.full_like(others, 1 / others.shape[1])
    result: Array = np.where(sums > 0, others / np.where(sums > 0, sums, 1), uniform)
    return result


def softmax(logits: Array) -> Array:
    """The softmax of each row.

    Parameters
    ----------
    logits : array of shape (n, classes)

    Examples
    --------
    >>> softmax(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    exponents: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    exponents /= exponents.sum(axis=1, keepdims=True)
    return exponents

"""Models that return only their top classes: scores in descending order, and the class of each.

Column 0 of such scores is the best class of each image, whichever that is. Read as probabilities
of classes, they would be nonsense that looks right.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log
from typing import Any

import numpy as np

from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted
from soda_tta.types import Array

UNLIKELY = 1e-6  # that rows of unordered columns all descend by chance
MANY = 8  # columns that a model does not return in descending order for images of one class
ROUNDING = 0.01  # of one value: rounded rows of all classes lack at most this per class


def are_ranked(rows: Array) -> bool:
    """Whether the columns are ranks rather than classes.

    Every row descends strictly, which rows of classes do not do by chance; and probability is
    missing that rounding does not explain, or there are many columns and the rows differ.

    >>> are_ranked(np.array([[0.5, 0.2, 0.1, 0.05]] * 9))
    True
    >>> are_ranked(np.array([[0.5, 0.2, 0.1, 0.05]] * 9 + [[0.1, 0.2, 0.5, 0.1]]))
    False
    """
    count, columns = rows.shape
    if columns < 3 or count * lgamma(columns + 1) < -log(UNLIKELY):
        return False
    if not ((np.diff(rows, axis=1) < 0).all() and rows.min() > 0):
        return False
    incomplete = rows.sum(axis=1).min() < 1 - columns * ROUNDING
    varied = columns >= MANY and bool(np.ptp(rows, axis=0).max() > ROUNDING)
    return bool(incomplete or varied)


def could_be_indices(shape: Sequence[Any], scores: Sequence[Any]) -> bool:
    """Whether an integer output of this declared shape holds the classes of such scores."""
    if len(shape) != 2 or len(scores) != 2:
        return False
    own, other = shape[1], scores[1]
    if isinstance(own, int) and isinstance(other, int):
        return own == other
    return 1 not in (own, other)


def refuse_top_classes(place: str, outputs: Sequence[Any], scores: str) -> None:
    """Refuse a served model that declares an output with the classes of its scores.

    Parameters
    ----------
    place : str
        Where the model is, for the error.
    outputs : sequence
        The declared outputs, each with `name`, `datatype` and `shape`.
    scores : str
        The name of the output with the scores.
    """
    shapes = {
        each.name: [extent if extent != -1 else None for extent in each.shape] for each in outputs
    }
    for each in outputs:
        is_integer = each.datatype in ("INT64", "INT32")
        if is_integer and could_be_indices(shapes[each.name], shapes.get(scores, ())):
            raise BoxError(
                f"{place} returns its top classes, with their indices in {quoted(each.name)!r}; "
                "serve the scores of all classes, or give the ONNX file itself with class_count=."
            )


def spread(scores: Array, indices: Array, classes: int) -> Array:
    """One column per class, 0 for classes that are not among the top ones.

    Parameters
    ----------
    scores : array of shape (n, k)
    indices : array of int of shape (n, k)
        The class of each score.
    classes : int
        Number of all classes.

    Examples
    --------
    >>> spread(np.array([[0.6, 0.3]]), np.array([[2, 0]]), 4)
    array([[0.3, 0. , 0.6, 0. ]])
    """
    if scores.ndim != 2 or scores.shape != indices.shape:
        raise BoxError(
            f"the model returned scores of shape {scores.shape} and class indices of shape "
            f"{indices.shape}; they must be equal."
        )
    if indices.size and not (indices.min() >= 0 and indices.max() < classes):
        raise BoxError(
            f"the model returned the class {indices.max()}, but class_count is {classes}; "
            "pass the number of all classes."
        )
    rows: Array = np.zeros((len(scores), classes), scores.dtype)
    np.put_along_axis(rows, indices.astype(np.int64), scores, axis=1)
    return rows

"""From the JSON answer of a REST API to one row of scores per image."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import numpy as np

from soda_tta.foreign_text import quoted
from soda_tta.protocols.json_path import JsonPath, kind_of
from soda_tta.protocols.rest_description import AnswerPlaces, RestDescription
from soda_tta.types import Array

SHOWN = 200  # characters of an answer in an error
SURE = 1e-6  # independent scores this near to 0 or 1 are rounded ones
TOLERANCE = 1e-2  # of a sum: services print few digits
ROUNDED = 0.05  # top classes, rounded, may also sum to more than 1


class AnswerError(ValueError):
    """An answer that is not as described. The message says what is there and which key to set."""


def read_answer(document: Any, description: RestDescription, count: int) -> Array:
    """One row per image and one column per class; absent classes are 0.

    Independent scores become probabilities: that of each class, given that exactly one is true.
    Logits are returned as they are.

    Parameters
    ----------
    document : the parsed answer.
    description : what it should look like.
    count : images in the request.
    """
    places = description.answer
    _refuse_errors(document, places)
    scores = _per_image(places.scores, "scores", document, description, count)
    labels: list[Any] = [None] * count
    if places.labels is not None:
        labels = _per_image(places.labels, "labels", document, description, count)
    columns = {name: column for column, name in enumerate(description.classes)}
    rows = np.zeros((count, len(columns)))
    for row, image_labels, image_scores in zip(rows, labels, scores, strict=True):
        _fill(row, image_labels, image_scores, columns, description)
    return rows


def _refuse_errors(document: Any, places: AnswerPlaces) -> None:
    """Refuse an answer that holds an error; null and empty ones are none."""
    if places.error is None:
        return
    try:
        problem = places.error.find(document)
    except LookupError:
        return
    if problem:
        raise AnswerError(
            f"the answer holds an error ({places.error.text}): {quoted(problem, SHOWN)}."
        )


def _per_image(
    path: JsonPath, key: str, document: Any, description: RestDescription, count: int
) -> list[Any]:
    """What stands at the path, for each image."""
    try:
        if description.image.per_request == 1:
            return [path.find(document)]
        outer, inner = path.split()
        found = [inner.find(item) for item in outer.find(document)]
    except LookupError as error:
        hint = ""
        if description.answer.error is None:
            hint = "; if it is an error of the API, name its place (error = ...)"
        raise AnswerError(
            f"{key} = {path.text!r} does not fit the answer: {error}{hint}. "
            f"The answer: {quoted(document, SHOWN)}"
        ) from error
    if len(found) != count:
        raise AnswerError(f"the answer has {key} for {len(found)} images; {count} were sent.")
    return found


def _fill(
    row: Array, labels: Any, scores: Any, columns: dict[str, int], description: RestDescription
) -> None:
    """Write the scores of one image into its row."""
    places = description.answer
    if labels is None and isinstance(scores, dict):
        labels, scores = list(scores), list(scores.values())
    scores = scores if isinstance(scores, list) else [scores]
    if not scores:
        raise AnswerError(
            "the answer has no scores for an image; lower the threshold of the API, so that every "
            "image gets some."
        )
    wrong = [score for score in scores if isinstance(score, bool) or not _is_number(score)]
    if wrong:
        raise AnswerError(
            f"scores = {places.scores.text!r} finds {kind_of(wrong[0])} ({quoted(wrong[0], 40)}) "
            "where a number should be."
        )
    if labels is None:
        indices = list(range(len(columns)))
    else:
        labels = labels if isinstance(labels, list) else [labels]
        indices = [_column(label, columns) for label in labels]
    _check_lengths(labels, scores, indices, description)
    values = np.array(scores, np.float64)
    row[indices] = READERS[places.kind](values)
    if places.kind in ("probabilities", "percent"):
        _check_sum(row, values, description)
    elif places.kind != "logits":
        row /= row.sum()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _column(label: Any, columns: dict[str, int]) -> int:
    name = str(label).strip()
    if name not in columns:
        near = get_close_matches(name, columns, 1)
        hint = f" (the nearest one is {near[0]!r})" if near else ""
        raise AnswerError(
            f"the answer has the class {quoted(name, 60)!r}, which is not in classes{hint}; add "
            "it, or correct its spelling there."
        )
    return columns[name]


def _check_lengths(
    labels: Any, scores: list[Any], indices: list[int], description: RestDescription
) -> None:
    classes = len(description.classes)
    if len(indices) != len(scores) and labels is None:
        raise AnswerError(
            f"the answer has {len(scores)} scores, but classes has {classes}; correct "
            "classes, or name the place of the labels (labels = ...)."
        )
    if len(indices) != len(scores):
        raise AnswerError(
            f"the answer has {len(indices)} labels and {len(scores)} scores; check the paths."
        )
    if len(set(indices)) != len(indices):
        raise AnswerError("the answer has a class more than once; check the path of the labels.")
    if len(indices) < classes and not description.partial:
        raise AnswerError(
            f"the answer has {len(indices)} of {classes} classes; if the API returns only its "
            f"top classes, set top = {len(indices)} under [answer]."
        )


def _check_sum(row: Array, values: Array, description: RestDescription) -> None:
    """Refuse what are not probabilities, with the key that may explain it."""
    kind = description.answer.kind
    total = float(row.sum())
    lowest = float(row.min())
    most = 1 + (ROUNDED if description.partial else TOLERANCE)
    least = 0.0 if description.partial else 1 - TOLERANCE
    if lowest >= 0 and least <= total <= most:
        return
    problem = f"sum to {values.sum():.4g}"
    if lowest < 0:
        problem = f"contain negative values ({values.min():.4g})"
        remedy = 'kind = "logits"'
    elif total < least:
        small = kind == "percent" and values.max() <= 1
        remedy = 'kind = "probabilities"' if small else f"top = {len(row) - 1}"
    elif values.max() > 1 and kind == "probabilities":
        remedy = 'kind = "percent" (or "logits")'
    else:
        end = " percent" if kind == "percent" else ""
        remedy = f'kind = "independent{end}", if several classes can be true at once'
    unit = "100" if kind == "percent" else "1"
    raise AnswerError(f"the scores {problem}, not {unit}; set {remedy} under [answer].")


def _odds(scores: Array) -> Array:
    """The odds of independent scores.

    Given that exactly one class is true, probabilities are proportional to the odds.
    """
    if scores.min() < 0 or scores.max() > 1:
        raise AnswerError(
            f"independent scores lie between 0 and 1; the answer has {scores.max():.4g}. Set "
            'kind = "independent percent" or "logits" under [answer].'
        )
    inside = np.clip(scores, SURE, 1 - SURE)
    return np.asarray(inside / (1 - inside))


def _as_they_are(scores: Array) -> Array:
    return scores


READERS: dict[str, Callable[[Array], Array]] = {
    "probabilities": _as_they_are,
    "percent": lambda scores: scores / 100,
    "logits": _as_they_are,
    "independent": _odds,
    "independent percent": lambda scores: _odds(scores / 100),
}

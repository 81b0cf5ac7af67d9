"""From the model's responses to an answer: the mean over several views, and class weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.types import Array

VERSION = 1  # of the settings in a file
SHIFT = 16  # a shifted image is moved by its side divided by this
LEAST_LIKELY = 1e-12  # a zero of a model that rounds its responses is not impossible
MOST_CLASSES = 10**6
LARGEST_WEIGHT = 1e9


def mirrored(images: Array) -> Array:
    """Every image mirrored left to right.

    Parameters
    ----------
    images : array of shape (n, 3, height, width)
    """
    return np.ascontiguousarray(images[..., ::-1])


def moved(images: Array) -> Array:
    """Every image shifted down and to the left by a few pixels.

    A shift keeps the class of any image. A mirror image would serve as well for photographs, but
    not for digits, letters and road signs.

    Parameters
    ----------
    images : array of shape (n, 3, height, width)

    Returns
    -------
    array of the same shape; pixels that enter at the border repeat the border

    Examples
    --------
    >>> image = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> moved(image)[0, 0].tolist()[1]
    [1.0, 2.0, 3.0, 3.0]
    """
    height, width = images.shape[-2:]
    down = max(1, height // SHIFT)
    left = max(1, width // SHIFT)
    wide = np.pad(images, ((0, 0), (0, 0), (down, 0), (0, left)), mode="edge")
    return np.ascontiguousarray(wide[:, :, :height, left : left + width])


# What may be sent besides the adapted image itself, in the order in which views are added.
VIEWS: dict[str, Callable[[Array], Array]] = {"mirror": mirrored, "shift": moved}


@dataclass(frozen=True, eq=False)
class Answering:
    """How responses become the answer to an image; one image is answered like many.

    Parameters
    ----------
    views : tuple of str
        What is sent besides the adapted image: "mirror", "shift". The responses are averaged.
    weights : array of shape (classes,), optional
        What the probability of each class is multiplied by before rows are normalised again.
        None: probabilities stay as the model returns them.

    Examples
    --------
    >>> answering = Answering(views=("mirror",), weights=np.array([1.0, 3.0]))
    >>> answering.queries
    2
    >>> image, mirror = [[0.9, 0.1]], [[0.7, 0.3]]
    >>> answering.answers(np.array([image, mirror])).round(2)  # of 0.8 and 0.2 x 3
    array([[0.57, 0.43]], dtype=float32)
    """

    views: tuple[str, ...] = ()
    weights: Array | None = None

    def __post_init__(self) -> None:
        check_views(self.views)
        if self.weights is not None:
            check_weights(self.weights)

    @property
    def is_plain(self) -> bool:
        """Whether the answer is the model's response to the adapted image."""
        return not self.views and self.weights is None

    @property
    def queries(self) -> int:
        """Queries per image."""
        return 1 + len(self.views)

    def sent(self, adapted: Array) -> Array:
        """All views of adapted images, one view after the other.

        Parameters
        ----------
        adapted : array of shape (n, 3, height, width)

        Returns
        -------
        array of shape (queries * n, 3, height, width)
        """
        if not self.views:
            return adapted
        return np.concatenate([adapted, *(VIEWS[name](adapted) for name in self.views)])

    def received(self, rows: Array) -> Array:
        """The answers, from the responses to what `sent` returned.

        Parameters
        ----------
        rows : array of shape (queries * n, classes)
        """
        if self.is_plain:
            return rows
        return self.answers(rows.reshape(self.queries, -1, rows.shape[1]))

    def answers(self, responses: Array) -> Array:
        """The answers, from the responses to each view.

        Parameters
        ----------
        responses : array of shape (queries, n, classes)
        """
        mean: Array = np.asarray(np.mean(responses, axis=0, dtype=np.float64))
        return weighted(mean, self.weights).astype(np.float32)

    def describe(self) -> str:
        """What is done, in a few words; empty if nothing is.

        >>> Answering(views=("mirror",), weights=np.array([1.0, 0.5])).describe()
        'mean over the image and its mirror image; class weights from 0.5 to 1'
        """
        texts = []
        if self.views:
            names = {"mirror": "its mirror image", "shift": "a shifted image"}
            texts.append("mean over the image and " + " and ".join(names[v] for v in self.views))
        if self.weights is not None:
            low, high = float(self.weights.min()), float(self.weights.max())
            texts.append(f"class weights from {low:.2g} to {high:.2g}")
        return "; ".join(texts)

    @property
    def settings(self) -> dict[str, Any]:
        """The same as plain JSON, for a file."""
        weights = None if self.weights is None else [float(each) for each in self.weights]
        return {"version": VERSION, "views": list(self.views), "weights": weights}

    @staticmethod
    def from_settings(settings: dict[str, Any]) -> Answering:
        """The inverse of `settings`; ValueError or MethodError if they are something else."""
        if settings["version"] != VERSION:
            raise ValueError(f"its answers are of version {settings['version']!r}")
        weights = settings["weights"]
        exact = None if weights is None else np.array(weights, np.float64)
        return Answering(tuple(str(name) for name in settings["views"]), exact)


def weighted(rows: Array, weights: Array | None) -> Array:
    """Probabilities times class weights, normalised again.

    Parameters
    ----------
    rows : array of shape (n, classes)
    weights : array of shape (classes,), or None to leave the rows as they are

    Examples
    --------
    >>> weighted(np.array([[0.5, 0.5]]), np.array([1.0, 3.0])).tolist()
    [[0.25, 0.75]]
    """
    if weights is None:
        return rows
    if rows.shape[1] != len(weights):
        raise MethodError(
            f"the class weights are for {len(weights)} classes and the model has {rows.shape[1]}; "
            "use the model that they were learned with."
        )
    products = (np.asarray(rows, np.float64) + LEAST_LIKELY) * weights
    result: Array = products / products.sum(axis=1, keepdims=True)
    return result


def check_views(views: Sequence[str]) -> None:
    """Raise an error for views that do not exist, or twice the same."""
    if len(set(views)) != len(views) or not set(views) <= set(VIEWS):
        raise MethodError(
            f"the views {list(views)} are not valid; choose from {', '.join(VIEWS)}, each once."
        )


def check_weights(weights: Array) -> None:
    """Raise an error for what cannot be class weights."""
    valid = weights.ndim == 1 and 2 <= len(weights) <= MOST_CLASSES
    if not valid or not (weights.min() >= 0 and 0 < weights.max() < LARGEST_WEIGHT):
        raise MethodError("class weights are numbers of 0 or more, one per class, not all 0.")
    if not math.isfinite(weights.sum()):
        raise MethodError("class weights must be finite.")


PLAIN = Answering()

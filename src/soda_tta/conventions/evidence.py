"""How good the responses to a convention are, and how sure it is that one is better than another.

The measure is the mutual information of images and classes: high if the model is confident about
each image and spreads over the classes. A convention that saturates the model gives one class for
all images, and a wrong one gives uncertain responses; both lower it. docs/research/conventions.md
compares it with other measures.
"""

from __future__ import annotations

import numpy as np

from soda_tta.objectives.equations import entropy
from soda_tta.types import Array

RESAMPLES = 400
SAME_EFFECT = 0.05  # mean difference of probabilities, as total variation


def information(rows: Array, weights: Array | None = None) -> Array:
    """The mutual information of images and classes, in nats, for each row of weights.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities.
    weights : array of shape (samples, n), optional
        How much each image counts; every row sums to 1. Default: one sample, all images alike.

    Examples
    --------
    >>> information(np.eye(2)).round(2)
    array([0.69])
    >>> information(np.array([[1.0, 0.0], [1.0, 0.0]])).round(2)  # one class for all images
    array([0.])
    """
    exact = np.asarray(rows, np.float64)
    if weights is None:
        weights = np.full((1, len(exact)), 1 / len(exact))
    result: Array = entropy(weights @ exact) - weights @ entropy(exact)
    return result + 0.0  # no negative zero


def share_ahead(first: Array, second: Array, seed: int = 0) -> float:
    """How often the first is ahead of the second if the images are drawn again (paired bootstrap).

    Parameters
    ----------
    first, second : arrays of shape (n, classes)
        Responses to the same images, sent in two ways.
    seed : int, default 0

    Examples
    --------
    >>> share_ahead(np.eye(4)[[0, 1, 2, 3] * 8], np.full((32, 4), 0.25))
    1.0
    """
    random = np.random.default_rng(seed)
    count = len(first)
    weights = random.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    ahead = information(first, weights) - information(second, weights)
    return float(np.mean(ahead > 0) + np.mean(ahead == 0) / 2)


def have_same_effect(first: Array, second: Array) -> bool:
    """Whether the responses to the same images hardly differ."""
    if first.shape[1] != second.shape[1]:
        return False  # another layout can give another number of classes
    count = min(len(first), len(second))
    difference = np.abs(first[:count] - second[:count]).sum(axis=1).mean() / 2
    return bool(difference <= SAME_EFFECT)

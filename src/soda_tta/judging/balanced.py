"""What balanced classes say about predictions: an assignment, an agreement, and an upper bound.

If the classes are equally frequent among the images, or as frequent as specified, a class that is
predicted too often must be wrong for some of them, whatever the model and whatever its confidence.
"""

from __future__ import annotations

import math

import numpy as np

from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

TEMPERATURE = 1.25  # of the doctor's score; chosen on six corruptions (docs/research/doctor.md)
LEAST_LIKELY = 1e-7  # a zero of a model that rounds its responses is not impossible
EXACT = 1e-6  # a probability this close to 1 is a class without a probability ...
MOSTLY = 0.8  # ... and the model returns only classes if it does so for this share of the images
CONFIDENCE = 0.95  # with which a bound holds
TEMPERATURES = (0.1, 10.0)  # between which a temperature is looked for
DRAWS = 400  # of the class counts
SCORED_ROWS = 1000  # the time of the assignment grows with the cube of their number
MOST_UNEVEN = 2.0  # how many times as frequent as another class one may be, if nothing is known


def largest_accuracy(predicted: Array, shares: Array) -> float:
    """The largest share of predictions that can be correct, given how frequent the classes are.

    A class that is predicted c times and shown m times is correct at most min(c, m) times. The
    counts m are not known, only their expectation: what they exceed it by, in 95 of 100 random
    samples, is added. The bound needs no confidence and no knowledge of the model.

    Parameters
    ----------
    predicted : integer array of shape (n,)
        The predicted classes.
    shares : array of shape (classes,)
        How frequent each class is.

    Examples
    --------
    Everything is assigned to one of ten classes, so about a tenth can be correct:

    >>> round(largest_accuracy(np.zeros(1000, int), np.full(10, 0.1)), 2)
    0.15
    """
    count = len(predicted)
    counts = np.bincount(predicted, minlength=len(shares))
    possible = float(np.minimum(counts / count, shares).sum())
    return min(1.0, possible + chance_excess(count, shares))


def chance_excess(count: int, shares: Array) -> float:
    """By how much a random sample exceeds the shares of its classes, summed over the classes."""
    draws = np.random.default_rng(0).multinomial(count, shares, size=DRAWS)
    excess = np.clip(draws / count - shares, 0, None).sum(axis=1)
    return float(np.quantile(excess, CONFIDENCE))


def favourable_shares(predicted: Array, classes: int) -> Array:
    """Of all shares with no class more than twice as frequent as another, those that fit best.

    The classes that are predicted most often are then the frequent ones. A bound from these shares
    holds for all the others.

    >>> favourable_shares(np.array([0, 0, 0, 1]), 3).tolist()
    [0.5, 0.25, 0.25]
    """
    counts = np.bincount(predicted, minlength=classes)
    often_first = np.argsort(-counts, kind="stable")
    best = equal_shares(classes)
    most = 0.0
    for frequent in range(classes):
        weights = np.ones(classes)
        weights[often_first[:frequent]] = MOST_UNEVEN
        shares = weights / weights.sum()
        possible = float(np.minimum(counts / len(predicted), shares).sum())
        if possible > most + 1e-12:
            most = possible
            best = shares
    return best


def equal_shares(classes: int) -> Array:
    """All classes are equally frequent."""
    shares: Array = np.full(classes, 1 / classes)
    return shares


def classes_alone(rows: Array) -> bool:
    """Whether nearly all rows have a probability of exactly 1: they do not tell how many are right.

    >>> classes_alone(np.eye(3)), classes_alone(np.full((3, 2), 0.5))
    (True, False)
    """
    return float(np.mean(rows.max(axis=1) >= 1 - EXACT)) > MOSTLY


def agreement_score(rows: Array, shares: Array | None = None) -> float:
    """Balanced agreement at one temperature for all models: a score, not an accuracy.

    It compares sets of images for the same model. Evenly spaced rows stand for very many.

    >>> agreement_score(np.eye(4)[np.arange(40) % 4])
    1.0
    """
    some = rows[:: -(-len(rows) // SCORED_ROWS)]
    return balanced_agreement(some, balanced_classes(some, shares))


def balanced_agreement(rows: Array, assigned: Array, temperature: float = TEMPERATURE) -> float:
    """The mean tempered confidence, counting only predictions that are the assigned class.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities.
    assigned : integer array of shape (n,)
        The class assigned to each row by `balanced_classes`.
    temperature : float, default 1.25
        Of the confidence; above 1 lowers it.
    """
    confidence = tempered(rows, 1 / temperature)[np.arange(len(rows)), assigned]
    return float((confidence * (rows.argmax(axis=1) == assigned)).mean())


def fitted_temperature(clean: Array, clean_accuracy: float) -> float:
    """The temperature at which the mean confidence is the accuracy.

    >>> round(fitted_temperature(np.array([[0.9, 0.1], [0.1, 0.9]]), 0.75), 2)
    2.0
    """
    low, high = TEMPERATURES
    for _ in range(30):
        middle = math.sqrt(low * high)
        if float(tempered(clean, 1 / middle).max(axis=1).mean()) > clean_accuracy:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)


def balanced_classes(rows: Array, shares: Array | None = None) -> Array:
    """The most likely class for every row such that no class exceeds its share.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities.
    shares : array of shape (classes,), optional
        How frequent each class is; by default all are equally frequent.

    Examples
    --------
    >>> balanced_classes(np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.9, 0.1]])).tolist()
    [0, 1, 1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    count, classes = rows.shape
    frequencies = equal_shares(classes) if shares is None else check_shares(shares, classes)
    places = np.repeat(np.arange(classes), np.ceil(count * frequencies - 1e-9).astype(int))
    likelihood = np.log(rows + LEAST_LIKELY)
    images, taken = linear_sum_assignment(likelihood[:, places], maximize=True)
    assigned = np.empty(count, np.int64)
    assigned[images] = places[taken]
    return assigned


def check_rows(probabilities: Array) -> Array:
    """The probabilities as float64 rows that sum to 1, or a ValueError that names the remedy."""
    rows: Array = np.array(probabilities, np.float64)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] < 2:
        raise ValueError(
            f"probabilities have shape {rows.shape}; give one row per image and one column per "
            "class, with at least 2 classes."
        )
    if not (np.isfinite(rows).all() and rows.min() >= 0 and rows.sum(axis=1).min() > 0):
        raise ValueError(
            "probabilities must be finite and not negative, and no row may be all zero; check the "
            "responses of the model."
        )
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


def check_shares(shares: Array, classes: int) -> Array:
    """The shares as float64 that sum to 1, or a ValueError that names the remedy."""
    exact: Array = np.array(shares, np.float64)
    if exact.shape != (classes,) or not exact.min() >= 0 or not 0 < exact.sum() < math.inf:
        raise ValueError(
            f"shares have shape {exact.shape}; give one number of 0 or more for each of {classes} "
            "classes."
        )
    exact /= exact.sum()
    return exact

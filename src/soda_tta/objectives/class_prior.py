"""A stated class prior: what answers are worth against it, and class weights that meet it."""

from __future__ import annotations

import numpy as np

from soda_tta.objectives.equations import (
    LOG_EPSILON,
    entropy,
    information_of_each,
    mutual_information,
)
from soda_tta.types import Array

LEAST_LIKELY = 1e-12  # a zero of a model that rounds its responses is not impossible
PULL = 3.0  # of each weight towards 1, in images; measured on the development corruptions
FARTHEST = 7.0  # logarithm of a weight: no prior makes a class a thousand times as likely
MOST_NUMBERS = 4_000_000  # of probabilities that weights are learned from; evenly spaced rows


def information_against(rows: Array, prior: Array | None) -> Array:
    """The contribution of each row to the mutual information of its batch against a prior.

    The mean is `entropy of the prior - KL(mean row || prior) - mean entropy`: in Eq. 8, the entropy
    of the mean row is replaced. For a balanced prior, as without one, this is the mutual
    information.

    Parameters
    ----------
    rows : array of shape (n, classes)
    prior : array of shape (classes,), or None

    Returns
    -------
    array of shape (n,), in nats

    Examples
    --------
    Confident answers that are spread as stated are worth the entropy of the prior. Evenly spread
    ones are worth more if nothing is stated, and less if something else is:

    >>> prior = np.array([0.75, 0.25])
    >>> as_stated = np.eye(2)[[0, 0, 0, 1]]
    >>> evenly = np.eye(2)[[0, 0, 1, 1]]
    >>> for stated in (prior, None):
    ...     for rows in (as_stated, evenly):
    ...         print(round(float(information_against(rows, stated).mean()), 2))
    0.56
    0.42
    0.56
    0.69
    """
    contributions = information_of_each(rows)
    if prior is None:
        return contributions
    expected: Array = np.asarray(rows, np.float64) @ np.log(prior + LOG_EPSILON)
    return contributions + expected + entropy(prior)


def mutual_information_against(rows: Array, prior: Array | None) -> float:
    """The mean of `information_against`: what a search maximises."""
    information = mutual_information(rows)
    if prior is None:
        return information
    expected = np.asarray(rows, np.float64).mean(axis=0) @ np.log(prior + LOG_EPSILON)
    return information + float(expected + entropy(prior))


def class_weights(rows: Array, prior: Array) -> Array:
    """Weights such that the mean of the weighted, normalised rows is the prior.

    With few images the frequencies of the classes among them differ from the prior by chance. Each
    weight is therefore pulled towards 1, as strongly as `PULL` images.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities.
    prior : array of shape (classes,)
        The share of each class; a class with the share 0 gets the weight 0.

    Returns
    -------
    array of shape (classes,); their geometric mean is 1, apart from weights of 0

    Examples
    --------
    A model that leans to the first class by a factor of 4:

    >>> honest = np.array([[0.8, 0.2], [0.2, 0.8]] * 5000)
    >>> leaning = honest * [4, 1] / (honest * [4, 1]).sum(axis=1, keepdims=True)
    >>> class_weights(leaning, np.array([0.5, 0.5])).round(2).tolist()
    [0.5, 2.0]
    """
    from scipy.optimize import minimize  # slow to import

    possible = np.flatnonzero(prior > 0)
    shares = prior[possible] / prior[possible].sum()
    step = -(-rows.size // MOST_NUMBERS)
    logs = np.log(np.asarray(rows[::step][:, possible], np.float64) + LEAST_LIKELY)
    pull = PULL / len(rows)

    def loss(exponents: Array) -> tuple[float, Array]:
        """Convex; without the pull, its slope is the mean answer minus the prior."""
        scores = logs + exponents
        largest = scores.max(axis=1, keepdims=True)
        powers = np.exp(scores - largest)
        sums = powers.sum(axis=1, keepdims=True)
        value = float((np.log(sums) + largest).mean() - shares @ exponents)
        slope = (powers / sums).mean(axis=0) - shares
        return value + pull / 2 * float(exponents @ exponents), slope + pull * exponents

    start = np.zeros(len(possible))
    limits = [(-FARTHEST, FARTHEST)] * len(possible)
    options = {"gtol": 1e-7}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options).x
    weights = np.zeros(len(prior))
    weights[possible] = np.exp(found - found.mean())
    return weights

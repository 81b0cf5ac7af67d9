"""The paper's equations, tagged with their numbers: what probabilities are worth without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.settings import setting
from soda_tta.types import Array

LOG_EPSILON = 1e-5  # as in the released code: log(p + 1e-5)
BETA_MEANING = "weight of the norm of the perturbation (what is added to the image)"


class Loss(NamedTuple):
    """The value that a search minimises, and its two parts for monitoring."""

    value: float
    mutual_information: float
    cross_entropy: float


def entropy(probabilities: Array) -> Array:
    """The entropy along the last axis, in nats.

    Parameters
    ----------
    probabilities : array of shape (..., classes)

    Returns
    -------
    array of shape (...)

    Examples
    --------
    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3).tolist()
    [0.693, -0.0]
    """
    exact = np.asarray(probabilities, np.float64)
    result: Array = -(exact * np.log(exact + LOG_EPSILON)).sum(axis=-1)
    return result


def mutual_information(probabilities: Array) -> float:
    """Eq. 8: the entropy of the mean row minus the mean entropy of the rows, in nats.

    It is high if the model is confident about each image and spreads over the classes. It is to be
    maximised; Eq. 13 reverses its sign.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
        No rows at all give 0.

    Examples
    --------
    >>> bool(np.isclose(mutual_information(np.eye(4)), np.log(4), atol=1e-3))
    True
    """
    if not len(probabilities):
        return 0.0
    exact = np.asarray(probabilities, np.float64)
    return float(entropy(exact.mean(axis=0)) - entropy(exact).mean())


def cross_entropy(probabilities: Array, labels: Array) -> float:
    """The mean of -log p over the labels, in nats.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
        No rows at all give 0.
    labels : integer array of shape (n,)

    Examples
    --------
    >>> round(cross_entropy(np.array([[0.5, 0.5]]), np.array([0])), 3)
    0.693
    """
    if not len(probabilities):
        return 0.0
    chosen = np.asarray(probabilities, np.float64)[np.arange(len(labels)), labels]
    return float(-np.log(chosen + LOG_EPSILON).mean())


def information_of_each(probabilities: Array) -> Array:
    """The contribution of each row to the mutual information of its batch.

    The mean of these values is `mutual_information`. Their standard deviation, divided by the root
    of their number, is the standard error of that mean.

    Parameters
    ----------
    probabilities : array of shape (n, classes)

    Returns
    -------
    array of shape (n,), in nats

    Examples
    --------
    >>> information_of_each(np.eye(2)).round(3).tolist()
    [0.693, 0.693]
    """
    exact = np.asarray(probabilities, np.float64)
    surprise: Array = -(exact * np.log(exact.mean(axis=0) + LOG_EPSILON)).sum(axis=1)
    return surprise - entropy(exact)


def mutual_information_slope(probabilities: Array) -> Array:
    """The derivative of `mutual_information` with respect to each probability.

    It is also the mutual information as seen from one image: linear around the mean of its batch.

    Parameters
    ----------
    probabilities : array of shape (n, classes)

    Returns
    -------
    array of shape (n, classes)
    """
    exact = np.asarray(probabilities, np.float64)
    return (_entropy_slope(exact.mean(axis=0)) - _entropy_slope(exact)) / len(exact)


def _entropy_slope(probabilities: Array) -> Array:
    """The derivative of `entropy` with respect to each probability."""
    shifted = probabilities + LOG_EPSILON
    slope: Array = -np.log(shifted) - probabilities / shifted
    return slope


def cross_entropy_slope(probabilities: Array, labels: Array) -> Array:
    """The derivative of `cross_entropy` with respect to each probability.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
    labels : integer array of shape (n,)

    Returns
    -------
    array of shape (n, classes)
    """
    rows = np.arange(len(labels))
    chosen = np.asarray(probabilities, np.float64)[rows, labels]
    slope = np.zeros(probabilities.shape)
    slope[rows, labels] = -1 / (chosen + LOG_EPSILON) / len(labels)
    return slope


def perturbation_norm(perturbations: Array) -> float:
    """Eq. 16 as the released code implements it: the mean matrix 1-norm of the channels.

    The matrix 1-norm is the largest column sum of absolute values.

    Parameters
    ----------
    perturbations : array of shape (n, channels, height, width)

    Examples
    --------
    >>> perturbation_norm(np.array([[[[1.0, -2.0], [0.5, 1.0]]]]))  # columns sum to 1.5 and 3
    3.0
    """
    return float(np.abs(perturbations).sum(axis=-2).max(axis=-1).mean())


@dataclass(frozen=True, kw_only=True)
class Soda:
    """Eq. 13: alpha * cross-entropy (reliable images) - mutual information (unreliable images).

    Either set may be empty; its part is then 0. With `beta`, the norm of the perturbation is added
    by the caller, who knows the images (Eq. 17).

    Parameters
    ----------
    alpha : float, default 1e-4
        Weight of the cross-entropy.
    beta : float, default 0
        Weight of the perturbation's norm.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> none = np.array([False, False])
    >>> loss = Soda()(probabilities, labels=np.array([0, 1]), reliable=none)
    >>> loss.value == -mutual_information(probabilities)
    True
    """

    alpha: float = setting(
        1e-4, "weight of the cross-entropy of trusted images (mutual information has weight 1)"
    )
    beta: float = setting(0.0, BETA_MEANING)

    def __post_init__(self) -> None:
        if min(self.alpha, self.beta) < 0:
            raise MethodError(
                f"alpha={self.alpha} and beta={self.beta} are weights; give 0 or more for each."
            )

    def __call__(self, probabilities: Array, labels: Array, reliable: Array) -> Loss:
        information = mutual_information(probabilities[~reliable])
        agreement = cross_entropy(probabilities[reliable], labels[reliable])
        return Loss(-information + self.alpha * agreement, information, agreement)

    def slope(self, probabilities: Array, labels: Array, reliable: Array) -> Array:
        """The derivative of the loss with respect to each probability."""
        slope = np.zeros(probabilities.shape)
        if not reliable.all():
            slope[~reliable] = -mutual_information_slope(probabilities[~reliable])
        if reliable.any():
            slope[reliable] = self.alpha * cross_entropy_slope(
                probabilities[reliable], labels[reliable]
            )
        return slope


@dataclass(frozen=True, kw_only=True)
class PseudoLabels:
    """Plain cross-entropy on every initial pseudo-label, reliable or not (DA-PL, DA-Direct).

    Parameters
    ----------
    beta : float, default 0
        Weight of the perturbation's norm.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> labels = np.array([0, 1])
    >>> loss = PseudoLabels()(probabilities, labels, reliable=np.array([False, False]))
    >>> loss.value == cross_entropy(probabilities, labels)
    True
    """

    beta: float = setting(0.0, BETA_MEANING)

    def __post_init__(self) -> None:
        if self.beta < 0:
            raise MethodError(f"beta={self.beta} is a weight; give 0 or more.")

    def __call__(self, probabilities: Array, labels: Array, reliable: Array) -> Loss:
        agreement = cross_entropy(probabilities, labels)
        return Loss(agreement, mutual_information(probabilities), agreement)

    def slope(self, probabilities: Array, labels: Array, reliable: Array) -> Array:
        """The derivative of the loss with respect to each probability."""
        return cross_entropy_slope(probabilities, labels)


Objective = Soda | PseudoLabels

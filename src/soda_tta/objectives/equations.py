"""What a set of probabilities is worth without labels: the paper's equations, tagged with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.types import Array

LOG_EPSILON = 1e-5  # the released code's log(p + 1e-5)
SHARED_EPSILON = 1e-6  # pairs of classes never seen together count nothing
MATCH_EPSILON = 0.01  # looks that have nothing in common are no infinite loss
CHANCE_PAIRS = (
    1,
    2,
    3,
    5,
    7,
    11,
    13,
    17,
)  # an image and the one so many places on, once they are mixed


class Loss(NamedTuple):
    """What a search minimises, and its parts for the people who watch it."""

    value: float
    mutual_information: float
    cross_entropy: float


def entropy(probabilities: Array) -> Array:
    """The entropy of each row, in nats."""
    exact = np.asarray(probabilities, np.float64)
    result: Array = -(exact * np.log(exact + LOG_EPSILON)).sum(axis=-1)
    return result


def mutual_information(probabilities: Array) -> float:
    """Eq. 8: entropy of the mean answer minus mean entropy of the answers; to be maximised (Eq. 13 turns its sign).

    >>> bool(np.isclose(mutual_information(np.eye(4)), np.log(4), atol=1e-3))
    True
    """
    if not len(probabilities):
        return 0.0
    exact = np.asarray(probabilities, np.float64)
    return float(entropy(exact.mean(axis=0)) - entropy(exact).mean())


def cross_entropy(probabilities: Array, labels: Array) -> float:
    """The mean of -log p of the given class."""
    if not len(probabilities):
        return 0.0
    chosen = np.asarray(probabilities, np.float64)[np.arange(len(labels)), labels]
    return float(-np.log(chosen + LOG_EPSILON).mean())


def information_of_each(probabilities: Array) -> Array:
    """What each answer adds to the mutual information of its batch: their mean is `mutual_information`.

    The deviation of these numbers, over the root of their count, is the standard error of their mean.
    """
    exact = np.asarray(probabilities, np.float64)
    surprise: Array = -(exact * np.log(exact.mean(axis=0) + LOG_EPSILON)).sum(axis=1)
    return surprise - entropy(exact)


def shared_information_of_each(first: Array, second: Array) -> Array:
    """What each pair of answers adds to the information that the two sets of answers share.

    Two looks at one image (here: moved by a few pixels) agree more than two looks at different ones only if the model
    recognises something. Evenly spread guesses do not raise this, and it does not assume classes of equal size, so it
    can judge what was searched by mutual information. With few images for the classes any two sets seem to share
    something: what pairs of different images share is subtracted.

    >>> sure = np.eye(4)[[0, 1, 2, 3] * 50]
    >>> bool(np.isclose(shared_information_of_each(sure, np.eye(4)[[0] * 200]).mean(), 0, atol=1e-3))
    True
    """
    by_chance = [
        _paired_information(first, second[others]) for others in pairs_of_different(len(first))
    ]
    shared: Array = _paired_information(first, second) - np.mean(by_chance, axis=0)
    return shared


def pairs_of_different(count: int) -> list[Array]:
    """For each image another one, a few times over; drawn, because neighbours in a folder are often of one class."""
    mixed, found = np.random.default_rng(count).permutation(count), []
    for shift in CHANCE_PAIRS:
        others = np.empty(count, int)
        others[mixed] = np.roll(mixed, shift)
        found.append(others)
    return found


def matching_information_of_each(first: Array, second: Array) -> Array:
    """How much better than others' looks the second look at an image matches the first, and the other way round.

    Also information that two looks share (a lower bound of it, at most the logarithm of the number of images). No table
    of classes by classes is estimated, so it sees gains where images are few for the classes. But answers that fall
    apart into more classes raise it, which on unbalanced images is harm: look at `agreement_of_each` beside it.

    >>> sure = np.eye(4)[[0, 1, 2, 3] * 50]
    >>> matching_information_of_each(sure, sure).mean().round(2), float(np.log(4).round(2))
    (np.float64(1.36), 1.39)
    """
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    own = (one * two).sum(axis=1)
    others = (
        one @ two.mean(axis=0),
        two @ one.mean(axis=0),
    )  # the mean likeness to all looks of the other kind
    likeness = [np.log(each + MATCH_EPSILON) for each in (own, *others)]
    matching: Array = likeness[0] - (likeness[1] + likeness[2]) / 2
    return matching


def agreement_of_each(first: Array, second: Array) -> Array:
    """How likely two looks at an image are to get the same answer, each drawn from its probabilities."""
    agreed: Array = (np.asarray(first, np.float64) * np.asarray(second, np.float64)).sum(axis=1)
    return agreed


def _paired_information(first: Array, second: Array) -> Array:
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    joint = one.T @ two / len(one)
    expected = np.outer(one.mean(axis=0), two.mean(axis=0))
    ratio = np.log((joint + SHARED_EPSILON) / (expected + SHARED_EPSILON))
    paired: Array = ((one @ ratio) * two).sum(axis=1)
    return paired


def mutual_information_slope(probabilities: Array) -> Array:
    """The derivative of `mutual_information` by each probability.

    It is also the mutual information seen from one image: linear around the mean answer of its batch.
    """
    exact = np.asarray(probabilities, np.float64)
    return (_entropy_slope(exact.mean(axis=0)) - _entropy_slope(exact)) / len(exact)


def _entropy_slope(probabilities: Array) -> Array:
    slope: Array = -np.log(probabilities + LOG_EPSILON) - probabilities / (
        probabilities + LOG_EPSILON
    )
    return slope


def cross_entropy_slope(probabilities: Array, labels: Array) -> Array:
    """The derivative of `cross_entropy` by each probability."""
    rows, slope = np.arange(len(labels)), np.zeros(probabilities.shape)
    slope[rows, labels] = (
        -1 / (np.asarray(probabilities, np.float64)[rows, labels] + LOG_EPSILON) / len(labels)
    )
    return slope


def perturbation_norm(perturbations: Array) -> float:
    """Eq. 16 as the released code means it: the matrix 1-norm (largest column sum) of each channel, averaged.

    >>> perturbation_norm(np.array([[[[1.0, -2.0], [0.5, 1.0]]]]))   # columns sum to 1.5 and 3
    3.0
    """
    return float(np.abs(perturbations).sum(axis=-2).max(axis=-1).mean())


@dataclass(frozen=True, kw_only=True)
class Soda:
    """Eq. 13: minus mutual information of the unreliable images plus alpha times cross-entropy of the reliable.

    Either part may be empty; it then counts nothing. With `beta` the perturbation's norm is added (Eq. 17).
    """

    alpha: float = 1e-4
    beta: float = 0.0

    def __post_init__(self) -> None:
        if min(self.alpha, self.beta) < 0:
            raise MethodError(
                f"alpha {self.alpha} and beta {self.beta} are weights and must not be negative."
            )

    def __call__(self, probabilities: Array, labels: Array, reliable: Array) -> Loss:
        information = mutual_information(probabilities[~reliable])
        agreement = cross_entropy(probabilities[reliable], labels[reliable])
        return Loss(-information + self.alpha * agreement, information, agreement)

    def slope(self, probabilities: Array, labels: Array, reliable: Array) -> Array:
        """The derivative of the loss by each probability."""
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
    """Plain cross-entropy on every initial pseudo-label, trusted or not (DA-PL, DA-Direct)."""

    beta: float = 0.0

    def __post_init__(self) -> None:
        if self.beta < 0:
            raise MethodError(f"beta {self.beta} is a weight and must not be negative.")

    def __call__(self, probabilities: Array, labels: Array, reliable: Array) -> Loss:
        agreement = cross_entropy(probabilities, labels)
        return Loss(agreement, mutual_information(probabilities), agreement)

    def slope(self, probabilities: Array, labels: Array, reliable: Array) -> Array:
        """The derivative of the loss by each probability."""
        return cross_entropy_slope(probabilities, labels)


Objective = Soda | PseudoLabels

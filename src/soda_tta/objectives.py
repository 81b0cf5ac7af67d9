"""What a set of probabilities is worth without labels: the paper's equations, tagged with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
LOG_EPSILON = 1e-5  # the released code's log(p + 1e-5)


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
    """Eq. 8 with its sign turned: entropy of the mean answer minus mean entropy of the answers; to be maximised.

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


@dataclass(frozen=True, kw_only=True)
class Soda:
    """Eq. 13: minus mutual information of the unreliable images plus alpha times cross-entropy of the reliable.

    Either part may be empty; it then counts nothing.
    """

    alpha: float = 1e-4

    def __call__(self, probabilities: Array, labels: Array, reliable: Array) -> Loss:
        information = mutual_information(probabilities[~reliable])
        agreement = cross_entropy(probabilities[reliable], labels[reliable])
        return Loss(-information + self.alpha * agreement, information, agreement)

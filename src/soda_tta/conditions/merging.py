"""Gaussians that images cannot be assigned to reliably describe one condition, not two.

A mixture needs several Gaussians for one condition whose numbers are not normally distributed: a
bright and a dark scene, sky and grass. Those overlap, and different conditions hardly do.
"""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array

CONFUSED = 0.08  # share of one Gaussian's images that another one takes


def merged(shares: Array) -> list[list[int]]:
    """Groups of Gaussians, each of which is told apart from every other (Hennig, 2010).

    Parameters
    ----------
    shares : array of shape (n, k)
        The probability of each Gaussian for each image.

    Examples
    --------
    >>> certain, torn = np.array([[1.0, 0.0, 0.0]] * 8), np.array([[0.0, 0.6, 0.4]] * 8)
    >>> merged(np.concatenate([certain, torn, torn[:, [0, 2, 1]]]))
    [[0], [1, 2]]
    """
    groups = [[place] for place in range(shares.shape[1])]
    while len(groups) > 1:
        confusion = confused(in_groups(shares, groups))
        first, second = sorted(np.unravel_index(confusion.argmax(), confusion.shape))
        if confusion[first, second] < CONFUSED and confusion[second, first] < CONFUSED:
            break
        groups[first] = sorted(groups[first] + groups.pop(second))
    return groups


def in_groups(shares: Array, groups: list[list[int]]) -> Array:
    """The probability of each group for each image."""
    return np.stack([shares[:, group].sum(axis=1) for group in groups], axis=1)


def confused(shares: Array) -> Array:
    """In row i and column j, the share of i's images that are assigned to j."""
    count = shares.shape[1]
    assigned = np.eye(count)[shares.argmax(axis=1)]
    confusion = shares.T @ assigned / np.maximum(shares.sum(axis=0), 1e-9)[:, None]
    np.fill_diagonal(confusion, 0)
    return np.asarray(confusion)

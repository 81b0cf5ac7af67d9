"""Scenes as the unit of a statistic: near copies of an image count once."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array


def scene_means(values: Array, scenes: Array) -> Array:
    """The mean of each scene's values, along the last axis.

    Parameters
    ----------
    values : array of shape (..., n)
    scenes : integer array of shape (n,)
        The scene of each value.

    Returns
    -------
    array of shape (..., number of scenes)

    Examples
    --------
    >>> scene_means(np.array([1.0, 2.0, 6.0]), np.array([0, 1, 1])).tolist()
    [1.0, 4.0]
    """
    _, number, sizes = np.unique(scenes, return_inverse=True, return_counts=True)
    if len(sizes) == len(scenes):
        return np.asarray(values)
    members = (np.arange(len(sizes)) == number[:, None]) / sizes
    means: Array = np.asarray(values) @ members
    return means


def scene_count(scenes: Array) -> int:
    """How many scenes there are."""
    return len(np.unique(scenes))

"""Tempering: make probabilities more or less confident; the order of the classes stays."""

from __future__ import annotations

from typing import Any


def tempered(probabilities: Any, exponent: float) -> Any:
    """Raise probabilities to a power and normalise each row again.

    This is what a softmax at temperature `1 / exponent` would have returned. An exact zero stays
    zero; add a small constant first if a rounded zero must not be impossible.

    Parameters
    ----------
    probabilities : numpy array or torch tensor of shape (n, classes)
        One row per image.
    exponent : float
        Above 1 the rows become more confident, below 1 less confident; 1 changes nothing.

    Returns
    -------
    numpy array or torch tensor, like `probabilities`

    Examples
    --------
    >>> import numpy as np
    >>> tempered(np.array([[0.8, 0.2]]), exponent=2).round(3).tolist()
    [[0.941, 0.059]]
    """
    powers = probabilities**exponent
    return powers / powers.sum(axis=1, keepdims=True)

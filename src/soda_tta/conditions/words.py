"""What a condition looks like, in words."""

from __future__ import annotations

import numpy as np

from soda_tta.conditions.statistics import NAMES
from soda_tta.types import Array

# The name of a number, whether it is high or low, and the word; in order of importance.
WORDS = (
    ("noise", "high", "noisy"),
    ("sharpness", "low", "blurred"),
    ("contrast", "low", "low contrast"),
    ("blocks", "high", "blocky"),
    ("flatness", "high", "flat areas"),
    ("brightness", "low", "dark"),
    ("brightness", "high", "bright"),
    ("saturation", "low", "pale"),
    ("clipped", "high", "clipped"),
    ("sharpness", "high", "sharp"),
    ("contrast", "high", "high contrast"),
    ("saturation", "high", "colourful"),
    ("noise", "low", "smooth"),
)
MOST = 3  # words for one condition
CLEAR = 0.8  # standard deviations of all images from which on a condition stands out


def describe(means: Array) -> list[str]:
    """A few words for each condition, by what distinguishes it from the others.

    Parameters
    ----------
    means : array of shape (conditions, numbers)
        The mean statistics of each condition, in standard deviations of all images.

    Examples
    --------
    >>> means = np.zeros((2, len(NAMES)))
    >>> means[0, NAMES.index("noise")] = 2
    >>> describe(means)
    ['noisy', 'like the average']
    """
    return [_words_for(dict(zip(NAMES, row, strict=True))) for row in means]


def _words_for(numbers: dict[str, float]) -> str:
    found = []
    for name, side, word in WORDS:
        value = numbers[name] if side == "high" else -numbers[name]
        if value >= CLEAR:
            found.append((value, word))
    # the most striking words, in the order of the table
    striking = sorted(found, reverse=True)[:MOST]
    words = [word for _, word in found if any(word == other for _, other in striking)]
    return ", ".join(words) or "like the average"


def spread(rows: Array) -> Array:
    """The standard deviation of each number, never 0."""
    return np.asarray(np.maximum(rows.std(axis=0), 1e-6))

"""Before any search: conditions that the same recipes help, and the same ones harm, are one.

Pictures may look different because of what they show, such as a white background. The model tells
whether that matters: a round on the recipes gives each condition a profile of gains and losses. It
costs what the searches save, because they begin with the best recipes and not with such a round.

Whether the best recipe of one condition serves the other as well would be the question, but with
so few images it is answered by chance; the whole profile is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from soda_tta.types import Array

# Chosen on the development corruptions: parts of one corruption that look different have 0.97 and
# more, different corruptions 0.93 and less (44 images each).
ALIKE = 0.95  # correlation of the profiles of conditions that are one
KEPT = 3  # recipes that a search begins with, at most


class Joined(NamedTuple):
    """Conditions that are one, and the recipes that help them, the best first."""

    members: tuple[int, ...]
    recipes: tuple[int, ...]


def joined_by_gains(gains: Sequence[Array], sizes: Sequence[int]) -> list[Joined]:
    """Join conditions whose profiles are alike, the most alike first.

    Parameters
    ----------
    gains : one array of shape (recipes,) per condition
        What each recipe gains over the images as they are.
    sizes : images of each condition

    Examples
    --------
    The same recipe helps the first two conditions; the third is best left as it is:

    >>> gains = [[1.0, -0.5, 0.1], [0.9, -0.4, 0.0], [-1.0, -0.2, 0.0]]
    >>> joined_by_gains(gains, sizes=[50, 50, 50])
    [Joined(members=(0, 1), recipes=(0, 2)), Joined(members=(2,), recipes=())]
    """
    groups: list[tuple[int, ...]] = [(number,) for number in range(len(gains))]
    while len(groups) > 1:
        options = [
            (likeness(profile(gains, sizes, one), profile(gains, sizes, other)), one, other)
            for one, other in combinations(groups, 2)
        ]
        highest, one, other = max(options)
        if highest < ALIKE:
            break
        kept = [each for each in groups if each not in (one, other)]
        groups = sorted([tuple(sorted(one + other)), *kept])
    return [Joined(members, helpful(profile(gains, sizes, members))) for members in groups]


def profile(gains: Sequence[Array], sizes: Sequence[int], members: Sequence[int]) -> Array:
    """What each recipe gains on the images of several conditions."""
    rows = [gains[member] for member in members]
    return np.average(rows, axis=0, weights=[sizes[member] for member in members])


def likeness(one: Array, other: Array) -> float:
    """The correlation of two profiles; leaving the images as they are belongs to both."""
    rows = np.array([[*one, 0.0], [*other, 0.0]])
    rows = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.sqrt((rows**2).sum(axis=1))
    if not lengths.all():
        return float(not lengths.any())
    return float(rows[0] @ rows[1] / lengths.prod())


def helpful(gains: Array) -> tuple[int, ...]:
    """The recipes that gain most, if they gain."""
    order = np.argsort(-gains, kind="stable")[:KEPT]
    return tuple(int(place) for place in order if gains[place] > 0)

"""Conditions whose adaptors serve each other as well are one condition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from soda_tta.types import Array

AS_WELL = 0.05  # share of images that may get another class than by the condition's own adaptor


class Group(NamedTuple):
    """Conditions with one adaptor."""

    members: tuple[int, ...]
    adaptor: int


def serving_groups(classes: Sequence[Array], own: Sequence[int]) -> list[Group]:
    """Join conditions as long as one adaptor serves all members as well as their own.

    The model must give nearly all images the same class with either. Mutual information would not
    do: with so few images it hardly tells a useful adaptor from a harmful one.

    Parameters
    ----------
    classes : one array of shape (adaptors, images) per condition
        The predicted class of the condition's images, by each adaptor. The images were used in no
        search.
    own : the adaptor that was found for each condition; 0 leaves images as they are.

    Examples
    --------
    The first two conditions are served by either adaptor, the third is not:

    >>> import numpy as np
    >>> right, wrong = np.zeros(8, int), np.ones(8, int)
    >>> both = np.stack([wrong, right, right, wrong])
    >>> other = np.stack([wrong, wrong, wrong, right])
    >>> serving_groups([both, both, other], own=[1, 2, 3])
    [Group(members=(0, 1), adaptor=1), Group(members=(2,), adaptor=3)]
    """
    groups = [Group((number,), adaptor) for number, adaptor in enumerate(own)]
    while len(groups) > 1:
        options = [
            (most_changed(classes, own, members, adaptor), Group(members, adaptor), pair)
            for pair in combinations(groups, 2)
            for members in [tuple(sorted(pair[0].members + pair[1].members))]
            for adaptor in sorted({pair[0].adaptor, pair[1].adaptor})
        ]
        changed, group, pair = min(options, key=lambda option: option[0])
        if changed > AS_WELL:
            break
        groups = sorted([group, *(each for each in groups if each not in pair)])
    return groups


def most_changed(
    classes: Sequence[Array], own: Sequence[int], members: Sequence[int], adaptor: int
) -> float:
    """The largest share of a member's images that get another class than by its own adaptor."""
    shares = [0.0]
    for member in members:
        rows = classes[member]
        if own[member] == adaptor:
            continue
        # Whether to adapt at all is for the verdict to say.
        unknown = rows.shape[1] == 0 or 0 in (adaptor, own[member])
        shares.append(1.0 if unknown else float((rows[own[member]] != rows[adaptor]).mean()))
    return max(shares)

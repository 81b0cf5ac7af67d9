"""Which images a search may use, and which others judge what it found. Scenes stay whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from soda_tta.types import Array

JUDGED_SHARE = 2 / 3  # of the scenes, where there are far fewer scenes than images


class Split(NamedTuple):
    """Places of images, both in the order of a shuffled deck."""

    judged: Array
    searched: Array


def split_scenes(scenes: Array, judged: int, searched: int, random: np.random.Generator) -> Split:
    """Divide images so that no scene is on both sides.

    Independent images are divided as asked for. Where most images are near copies, two thirds of
    the scenes judge, because a verdict needs many scenes and a search does not. Each side takes
    its images evenly from its scenes.

    Parameters
    ----------
    scenes : integer array of shape (n,)
        The scene of each image.
    judged, searched : int
        At most so many images on either side.
    random : numpy Generator
        Chooses the scenes of each side and the images of each scene.

    Examples
    --------
    >>> scenes = np.repeat([0, 1, 2], 4)
    >>> split = split_scenes(scenes, judged=6, searched=9, random=np.random.default_rng(0))
    >>> len(split.judged), len(split.searched)
    (6, 4)
    >>> set(scenes[split.judged]) & set(scenes[split.searched])
    set()
    """
    order = random.permutation(len(scenes))
    shuffled = scenes[order]
    _, first = np.unique(shuffled, return_index=True)
    names = shuffled[np.sort(first)]  # the scenes in the order of their first image
    few = len(names) < len(scenes) / 2
    share = JUDGED_SHARE if few else min(1.0, judged / len(scenes))
    judging = np.isin(shuffled, names[: round(share * len(names))])
    return Split(
        judged=order[judging][_evenly(shuffled[judging])[:judged]],
        searched=order[~judging][_evenly(shuffled[~judging])[:searched]],
    )


def _evenly(scenes: Array) -> Array:
    """An order that takes the first image of every scene, then the second of every scene ...

    >>> _evenly(np.array([0, 0, 0, 1, 1])).tolist()
    [0, 3, 1, 4, 2]
    """
    grouped = np.argsort(scenes, kind="stable")
    in_order = scenes[grouped]
    begins = np.ones(len(scenes), bool)
    begins[1:] = in_order[1:] != in_order[:-1]
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, len(scenes)))
    rank = np.empty(len(scenes), int)
    rank[grouped] = np.arange(len(scenes)) - np.repeat(starts, sizes)
    return np.argsort(rank, kind="stable")

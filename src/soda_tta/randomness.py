"""Named streams of randomness: two draws for different purposes never share a seed."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class RandomStream(IntEnum):
    """What a draw is for. Numbers are never reused: a stored result depends on them."""

    ORDER = 1  # of the images in an epoch
    NOISE = 2  # dropout of a step
    DIRECTIONS = 3  # of a zeroth-order step
    ARRIVAL = 4  # the seed of an arriving batch
    MIXING = 5  # shares and partners of MixMatch
    SUBSPACE = 6  # the basis all directions lie in
    STUDENT = 7  # everything a distilled network draws
    MODEL_ORDER = 8  # of the images when the model itself is trained
    SPLIT = 11  # which images are searched on and which are judged
    ROUNDS = 12  # the images of each round of pursuit
    GENERATIONS = 13  # the images of each generation of evolution
    SAMPLE = 14  # of an archive
    SURVEY = 15  # which images tell what helps a condition
    BORDER = 41  # the first border of BETA-26
    VIEWS = 42  # random crops of test-time augmentation
    CONFIRM = 43  # which images confirm what a helper has ranked, and their bootstrap samples
    LIVE = 21  # which images of a live stream are searched on, judged and watched


def generator(seed: int, stream: RandomStream, *place: int) -> np.random.Generator:
    """A generator that is a function of the seed, the stream and the place (epoch, step ...) alone.

    >>> first, again = (generator(0, RandomStream.ORDER, 3).random() for _ in range(2))
    >>> first == again
    True
    """
    return np.random.default_rng([seed, stream, *place])

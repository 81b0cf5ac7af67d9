"""What two views of an image share: measures that need two responses per image and no labels.

A view is a variant of an image that shows the same thing, for example the image shifted by a few
pixels. A model that recognises something responds alike to both views.
"""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array

SHARED_EPSILON = 1e-6  # pairs of classes that never occur together count nothing
MATCH_EPSILON = 0.01  # views that have nothing in common must not cost an infinite loss
PAIR_SHIFTS = (1, 2, 3, 5, 7, 11, 13, 17)  # distance of the two images of a pair, after shuffling


def shared_information_of_each(first: Array, second: Array) -> Array:
    """The contribution of each image to the mutual information of its two views, in nats.

    The responses to two views of one image agree more than those to two different images only if
    the model recognises something. Evenly spread guesses do not raise this measure, and it does not
    assume classes of equal size. So it can judge what was found by maximising mutual information.

    With few images per class, any two sets of responses seem to share something. What pairs of
    different images share is therefore subtracted.

    Parameters
    ----------
    first, second : arrays of shape (n, classes)
        Probabilities for the first and the second view of each image.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> confident = np.eye(4)[[0, 1, 2, 3] * 50]
    >>> always_first = np.eye(4)[[0] * 200]
    >>> shared = shared_information_of_each(confident, always_first).mean()
    >>> bool(np.isclose(shared, 0, atol=1e-3))
    True
    """
    by_chance = [
        _paired_information(first, second[others]) for others in pairs_of_different(len(first))
    ]
    shared: Array = _paired_information(first, second) - np.mean(by_chance, axis=0)
    return shared


def pairs_of_different(count: int) -> list[Array]:
    """For each of `count` images the index of another one, eight times over.

    The images are shuffled first, because neighbours in a folder often belong to one class.

    >>> pairs = pairs_of_different(50)
    >>> len(pairs), any((others == np.arange(50)).any() for others in pairs)
    (8, False)
    """
    shuffled = np.random.default_rng(count).permutation(count)
    pairs = []
    for shift in PAIR_SHIFTS:
        others = np.empty(count, int)
        others[shuffled] = np.roll(shuffled, shift)
        pairs.append(others)
    return pairs


def matching_information_of_each(first: Array, second: Array) -> Array:
    """How much better the two views of an image match each other than the views of other images.

    This also measures shared information: it is a lower bound, at most the logarithm of the number
    of images. It estimates no table of classes by classes, so it detects gains where there are few
    images per class. But it rises when responses split up into more classes, which on unbalanced
    images is harm: check `agreement_of_each` as well.

    Parameters
    ----------
    first, second : arrays of shape (n, classes)
        Probabilities for the first and the second view of each image.

    Returns
    -------
    array of shape (n,), in nats

    Examples
    --------
    >>> confident = np.eye(4)[[0, 1, 2, 3] * 50]
    >>> matching_information_of_each(confident, confident).mean().round(2)
    np.float64(1.36)
    >>> float(np.log(4).round(2))  # the most that four classes allow
    1.39
    """
    one = np.asarray(first, np.float64)
    two = np.asarray(second, np.float64)
    own = np.log((one * two).sum(axis=1) + MATCH_EPSILON)
    # the mean likeness to all views of the other kind
    to_second = np.log(one @ two.mean(axis=0) + MATCH_EPSILON)
    to_first = np.log(two @ one.mean(axis=0) + MATCH_EPSILON)
    matching: Array = own - (to_second + to_first) / 2
    return matching


def agreement_of_each(first: Array, second: Array) -> Array:
    """The probability that two views of an image get the same class, each drawn at random.

    Parameters
    ----------
    first, second : arrays of shape (n, classes)
        Probabilities for the first and the second view of each image.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> agreement_of_each(np.array([[1.0, 0.0]]), np.array([[0.25, 0.75]])).tolist()
    [0.25]
    """
    agreement: Array = (np.asarray(first, np.float64) * np.asarray(second, np.float64)).sum(axis=1)
    return agreement


def _paired_information(first: Array, second: Array) -> Array:
    """The contribution of each pair of rows to the mutual information of their classes."""
    one = np.asarray(first, np.float64)
    two = np.asarray(second, np.float64)
    joint = one.T @ two / len(one)
    expected = np.outer(one.mean(axis=0), two.mean(axis=0))
    ratio = np.log((joint + SHARED_EPSILON) / (expected + SHARED_EPSILON))
    paired: Array = ((one @ ratio) * two).sum(axis=1)
    return paired

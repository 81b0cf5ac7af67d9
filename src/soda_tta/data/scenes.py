"""Which images show the same scene: near copies, such as the frames of one camera.

A statistic over near copies is far less certain than their number suggests. They are found from
the pixels alone, without a query: two images show one scene if their details coincide after a
small shift.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from soda_tta.data.images import Images
from soda_tta.types import Array

SIDE = 32  # images are compared at this size
COARSE = 16  # ... and first, to find candidates, at this one
SHIFT = 5  # pixels, at SIDE, by which two frames of one scene may be displaced
PADDED = 48  # so that a shift of SHIFT does not wrap around
NEIGHBOURS = 8  # candidates per image
# Details are compared in two ranges of size, from one blur radius to the other, in pixels at SIDE.
# Of images that are not related, about one in a hundred exceeds these correlations with its nearest
# neighbour among 500 (CIFAR-10 and ImageNet, clean and corrupted: benchmarks/scenes.py).
RANGES = (((1.0, 3.0), 0.78), ((0.6, 2.0), 0.70))
AT_ONCE = 512  # images prepared together
FLAT = 1e-4  # a thumbnail with less detail than this shows nothing to compare


def find_scenes(images: Iterable[Array]) -> Array:
    """Number the scenes that some images show.

    Parameters
    ----------
    images : iterable of arrays of shape (n, 3, height, width)
        Batches, in the order in which the images were taken if that is known.

    Returns
    -------
    integer array of shape (n,)
        The scene of each image; scenes are numbered by their first image.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> scenes = random.random((3, 3, 32, 32))
    >>> frames = np.concatenate([scenes, np.roll(scenes, 1, axis=3)])
    >>> find_scenes([frames]).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    small = np.concatenate([thumbnails(batch) for batch in images])
    first, second = candidates(small)
    linked = np.zeros(len(first), bool)
    for (fine, coarse), least in RANGES:
        linked |= correlations(details(small, fine, coarse), first, second) >= least
    return connected(len(small), first[linked], second[linked])


def scenes_among(images: Images, places: Array) -> Array:
    """The scene of each of some images of a set, which are read piece by piece."""
    size = images.at_once
    starts = range(0, len(places), size)
    return find_scenes(images[places[start : start + size]] for start in starts)


def thumbnails(images: Array, side: int = SIDE) -> Array:
    """The grey images at a small size, (n, side, side)."""
    from PIL import Image

    grey = np.asarray(images, np.float32).mean(axis=1)
    if grey.shape[1:] == (side, side):
        small: Array = grey
        return small
    shrunk = [
        np.asarray(Image.fromarray(each).resize((side, side), Image.Resampling.BOX))
        for each in grey
    ]
    return np.array(shrunk, np.float32)


def details(small: Array, fine: float, coarse: float) -> Array:
    """What lies between two blur radii, faded out at the border and of norm 1.

    A thumbnail without any detail becomes zero: it resembles nothing.
    """
    from scipy.ndimage import gaussian_filter

    band = gaussian_filter(small, (0, fine, fine), mode="nearest")
    band -= gaussian_filter(small, (0, coarse, coarse), mode="nearest")
    fade = np.sqrt(np.hanning(small.shape[-1] + 2)[1:-1])
    band *= np.outer(fade, fade).astype(np.float32)
    band -= band.mean(axis=(1, 2), keepdims=True)
    norm = np.linalg.norm(band, axis=(1, 2), keepdims=True)
    normalised: Array = np.where(norm > FLAT, band / np.maximum(norm, FLAT), 0)
    return normalised


def candidates(small: Array) -> tuple[Array, Array]:
    """Pairs of images to compare: each with its likeliest neighbours and with its successor."""
    count = len(small)
    (fine, coarse), _ = RANGES[0]
    blocks = details(small, fine, coarse).reshape(count, COARSE, SIDE // COARSE, COARSE, -1)
    coarsened = blocks.mean(axis=(2, 4))
    likeness = np.full((count, count), -np.inf, np.float32)
    reach = SHIFT * COARSE // SIDE
    steps = range(-reach, reach + 1)
    flat = coarsened.reshape(count, -1)
    for down in steps:
        for right in steps:
            if (down, right) <= (0, 0):  # the other half is the transpose
                moved = np.roll(coarsened, (down, right), axis=(1, 2)).reshape(count, -1)
                np.maximum(likeness, flat @ moved.T, out=likeness)
    np.maximum(likeness, likeness.T, out=likeness)
    np.fill_diagonal(likeness, -np.inf)
    kept = min(NEIGHBOURS, count - 1)
    nearest = np.argpartition(-likeness, kept - 1, axis=1)[:, :kept] if kept else np.zeros((1, 0))
    first = np.concatenate([np.repeat(np.arange(count), kept), np.arange(count - 1)])
    second = np.concatenate([nearest.ravel().astype(int), np.arange(1, count)])
    return first, second


def correlations(bands: Array, first: Array, second: Array) -> Array:
    """The correlation of each pair, at the shift where it is largest."""
    spectra = np.fft.rfft2(bands, (PADDED, PADDED)).astype(np.complex64)
    best = np.empty(len(first))
    for start in range(0, len(first), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        product = spectra[first[part]] * np.conj(spectra[second[part]])
        shifted = np.roll(np.fft.irfft2(product, (PADDED, PADDED)), (SHIFT, SHIFT), (1, 2))
        best[part] = shifted[:, : 2 * SHIFT + 1, : 2 * SHIFT + 1].max(axis=(1, 2))
    return best


def connected(count: int, first: Array, second: Array) -> Array:
    """Number the groups of images that are linked, directly or through others.

    >>> connected(4, np.array([0]), np.array([2])).tolist()
    [0, 1, 0, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(first)), (first, second)), shape=(count, count))
    _, numbers = connected_components(links, directed=False)
    return in_order_of_appearance(numbers)


def in_order_of_appearance(numbers: Array) -> Array:
    """Renumber groups by their first member.

    >>> in_order_of_appearance(np.array([7, 3, 7])).tolist()
    [0, 1, 0]
    """
    _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.empty(len(first), int)
    rank[np.argsort(first)] = np.arange(len(first))
    renumbered: Array = rank[group]
    return renumbered

"""Images without their own noise and haze, so that these are not taken for the model's convention.

A convention that raises contrast would look right on hazy images, whatever the model was trained
with, and on noisy images a model may recognise so little that no convention stands out. Only the
search for the convention looks at images this way; a run adapts them as they are.
"""

from __future__ import annotations

import math

import numpy as np

from soda_tta.types import Array

ENDS = (1, 99)  # percentiles of the pixels of an image that become 0 and 1
LEAST_RANGE = 0.05  # an image of one colour stays almost as it is
NOISY = 0.04  # standard deviation of the noise from which on an image is smoothed
MOST_PASSES = 3
BLOCK = 8  # pixels of a block of JPEG
BLOCKY = 1.5  # steps at the borders of blocks are larger by this factor


def tidied(images: Array) -> Array:
    """The images, smoothed where they are noisy, each stretched so that its pixels fill [0, 1].

    Parameters
    ----------
    images : array of shape (n, channels, height, width)
        float32 in [0, 1].

    Examples
    --------
    >>> grey = np.linspace(0.4, 0.6, 300, dtype=np.float32).reshape(1, 3, 10, 10)
    >>> stretched = tidied(grey)
    >>> float(stretched.min()), float(stretched.max())
    (0.0, 1.0)
    """
    return stretched(smoothed(images))


def smoothed(images: Array) -> Array:
    """Each image after as many 3 x 3 median filters as its noise needs, at most three.

    Images with the blocks of JPEG get one at least.
    """
    from scipy.ndimage import median_filter

    result = images.copy()
    for number in range(MOST_PASSES):
        noisy = noise_of_each(result) > NOISY
        if number == 0 and blockiness(images) > BLOCKY:
            noisy[:] = True
        if not noisy.any():
            break
        result[noisy] = median_filter(result[noisy], (1, 1, 3, 3))
    return result


def noise_of_each(images: Array) -> Array:
    """The standard deviation of the noise in each image, from its finest detail (Immerkaer, 1996).

    Parameters
    ----------
    images : array of shape (n, channels, height, width)

    Examples
    --------
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal((1, 3, 64, 64))
    >>> noise_of_each(noise).round(2)
    array([0.1])
    """
    if min(images.shape[2:]) < 3:
        return np.zeros(len(images))
    rows = images[:, :, :-2] - 2 * images[:, :, 1:-1] + images[:, :, 2:]
    detail = rows[..., :-2] - 2 * rows[..., 1:-1] + rows[..., 2:]
    result: Array = np.abs(detail).mean(axis=(1, 2, 3)) * math.sqrt(math.pi / 2) / 6
    return result


def blockiness(images: Array) -> float:
    """How much larger steps are at every eighth column and row than elsewhere, over all images.

    Parameters
    ----------
    images : array of shape (n, channels, height, width)

    Examples
    --------
    >>> blocks = np.random.default_rng(0).random((4, 1, 4, 4)).repeat(8, axis=2).repeat(8, axis=3)
    >>> blockiness(blocks) > 5, round(blockiness(np.random.default_rng(0).random((9, 3, 64, 64))))
    (True, 1)
    """
    if min(images.shape[2:]) < 2 * BLOCK:
        return 1.0
    columns = np.abs(np.diff(images, axis=3)).mean(axis=(0, 1, 2))
    rows = np.abs(np.diff(images, axis=2)).mean(axis=(0, 1, 3))
    phases = [columns[phase::BLOCK].mean() + rows[phase::BLOCK].mean() for phase in range(BLOCK)]
    strongest = int(np.argmax(phases))
    others = np.delete(phases, strongest).mean()
    return float(phases[strongest] / max(others, 1e-6))


def stretched(images: Array) -> Array:
    """Each image at full contrast."""
    low, high = np.percentile(images, ENDS, axis=(1, 2, 3), keepdims=True)
    span = np.maximum(high - low, LEAST_RANGE)
    result: Array = np.clip((images - low) / span, 0, 1).astype(np.float32)
    return result

"""Numbers that tell conditions of images apart, such as noise, blur or haze, not their contents.

They need no query and no label. All of them are differences, means and quantiles of pixels, so that
a router can also compute them outside of Python.
"""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array

LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R 601
TILE = 64  # pixels; of larger images four tiles are enough, in their own resolution
SMALL = 96  # pixels; images up to this size are taken whole
FLOOR = 1e-3  # a quarter of an 8-bit step: less is nothing
STRONG, MIDDLE = 0.98, 0.5  # quantiles: the strongest edges, and flat areas
BLOCK = 8  # pixels of a block of JPEG
FLAT = 1 / 510  # neighbours that differ by less have the same byte
CLIPPED = 1 / 255

NAMES = (
    *("detail of 1 pixel", "detail of 2 pixels", "detail of 4 pixels", "detail of 8 pixels"),
    *("brightness", "contrast", "saturation"),
    *("noise", "colour noise"),
    *("sharpness", "curvature", "direction"),
    *("darkest", "brightest", "clipped"),
    *("blocks", "flatness"),
)


def statistics(images: Array) -> Array:
    """One row of numbers per image, in the order of `NAMES`.

    Parameters
    ----------
    images : array of shape (n, 3, height, width)
        float32 RGB in [0, 1], at least 8 pixels in each direction.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> smooth = np.full((1, 3, 32, 32), 0.5, np.float32)
    >>> noisy = smooth + 0.1 * random.standard_normal(smooth.shape).astype(np.float32)
    >>> column = NAMES.index("noise")
    >>> bool(statistics(noisy)[0, column] > statistics(smooth)[0, column])
    True
    """
    pixels = tiles(np.asarray(images, np.float32))
    grey = np.einsum("ntchw,c->nthw", pixels, LUMA)
    sharpness, curvature, direction, edges = _edges(grey)
    colour = pixels[:, :, 0] - pixels[:, :, 2]
    columns = (
        *_details(grey),
        grey.mean(axis=(1, 2, 3)),
        log_of(grey.std(axis=(1, 2, 3))),
        log_of((pixels.max(axis=2) - pixels.min(axis=2)).mean(axis=(1, 2, 3))),
        log_of(quantile(np.abs(_laplacian(grey)), MIDDLE)),
        log_of(quantile(np.abs(np.diff(colour, axis=3)), MIDDLE)),
        sharpness,
        curvature,
        direction,
        quantile(grey, 1 - STRONG),
        quantile(grey, STRONG),
        log_of(((pixels <= CLIPPED) | (pixels >= 1 - CLIPPED)).mean(axis=(1, 2, 3, 4))),
        _blocks(edges),
        log_of((edges < FLAT).mean(axis=(1, 2, 3))),
    )
    return np.stack(columns, axis=1).astype(np.float64)


def tiles(images: Array) -> Array:
    """Up to four tiles of each image: an array of shape (n, tiles, 3, height, width).

    >>> tiles(np.zeros((2, 3, 224, 224))).shape, tiles(np.zeros((2, 3, 32, 32))).shape
    ((2, 4, 3, 64, 64), (2, 1, 3, 32, 32))
    """
    height, width = images.shape[2:]
    down = _places(height)
    right = _places(width)
    size = tuple(side if side <= SMALL else TILE for side in (height, width))
    cut = [images[:, :, y : y + size[0], x : x + size[1]] for y in down for x in right]
    return np.stack(cut, axis=1)


def _places(side: int) -> list[int]:
    """Where tiles begin: a fifth of the free room from either border."""
    if side <= SMALL:
        return [0]
    return [(side - TILE) // 5, (side - TILE) * 4 // 5]


def _details(grey: Array) -> list[Array]:
    """The logarithm of how much a picture loses each time it is halved, four times."""
    found = []
    for _ in range(4):
        if min(grey.shape[2:]) < 2:
            found.append(np.full(len(grey), np.log(FLOOR)))
            continue
        height, width = (side // 2 * 2 for side in grey.shape[2:])
        whole = grey[:, :, :height, :width]
        rows = whole[:, :, ::2] + whole[:, :, 1::2]
        half = (rows[..., ::2] + rows[..., 1::2]) / 4
        lost = (whole**2).mean(axis=(1, 2, 3)) - (half**2).mean(axis=(1, 2, 3))
        found.append(log_of(np.sqrt(np.maximum(lost, 0))))
        grey = half
    return found


def _edges(grey: Array) -> tuple[Array, Array, Array, Array]:
    """Sharpness and curvature of the strongest edges, their direction, and all horizontal steps.

    An edge is sharp if neighbours differ nearly as much as pixels three apart, whatever the
    contrast. Curvature grows with noise and sharpening.
    """
    by_axis = []
    for axis in (3, 2):
        one = np.abs(np.diff(grey, axis=axis))
        three = np.abs(_apart(grey, 3, axis))
        second = np.abs(np.diff(grey, n=2, axis=axis))
        levels = [log_of(quantile(each, STRONG)) for each in (one, three, second)]
        by_axis.append((levels[0] - levels[1], levels[2] - levels[0], one))
    (across, bend_across, steps), (down, bend_down, _) = by_axis
    return (across + down) / 2, (bend_across + bend_down) / 2, np.abs(across - down), steps


def _apart(grey: Array, distance: int, axis: int) -> Array:
    """Differences of pixels that far apart."""
    count = grey.shape[axis] - distance
    later = np.take(grey, range(distance, grey.shape[axis]), axis=axis)
    return np.asarray(later - np.take(grey, range(count), axis=axis))


def _laplacian(grey: Array) -> Array:
    around = (
        grey[:, :, 2:, 1:-1] + grey[:, :, :-2, 1:-1] + grey[:, :, 1:-1, 2:] + grey[:, :, 1:-1, :-2]
    )
    return np.asarray(around - 4 * grey[:, :, 1:-1, 1:-1])


def _blocks(steps: Array) -> Array:
    """How much larger steps are at every eighth column than elsewhere, at the best phase."""
    phases = np.stack(
        [
            steps[..., phase::BLOCK].mean(axis=(1, 2, 3))
            for phase in range(min(BLOCK, steps.shape[3]))
        ]
    )
    return np.asarray(log_of(phases.max(axis=0)) - log_of(phases.mean(axis=0)))


def log_of(values: Array) -> Array:
    """The logarithm, with a floor below which nothing can be seen."""
    return np.asarray(np.log(values + FLOOR))


def quantile(values: Array, share: float) -> Array:
    """The value of each image below which this share of its values lies (no interpolation).

    >>> quantile(np.arange(10.0).reshape(1, 10), 0.5)
    array([4.])
    """
    flat = values.reshape(len(values), -1)
    place = round(share * (flat.shape[1] - 1))
    return np.asarray(np.partition(flat, place, axis=1)[:, place])

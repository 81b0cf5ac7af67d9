"""Whether an image is a near copy of one of the latest images: frames of a camera count once."""

from __future__ import annotations

from collections import deque
from functools import cache

import numpy as np

from soda_tta.data.scenes import (
    COARSE,
    FLAT,
    NEIGHBOURS,
    RANGES,
    SHIFT,
    SIDE,
    correlations,
    thumbnails,
)
from soda_tta.types import Array


class NearCopies:
    """The latest images of their scenes.

    Parameters
    ----------
    most : int
        Images to remember.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> image = random.random((3, 32, 32)).astype(np.float32)
    >>> latest = NearCopies(most=10)
    >>> latest.is_new(image), latest.is_new(np.roll(image, 1, axis=2))
    (True, False)
    """

    def __init__(self, most: int) -> None:
        self.small: deque[Array] = deque(maxlen=most)  # thumbnails
        self.bands: deque[Array] = deque(maxlen=most)  # (ranges, side, side)
        self.flat: deque[Array] = deque(maxlen=most)  # coarse details, to find candidates

    def __len__(self) -> int:
        return len(self.small)

    def is_new(self, image: Array) -> bool:
        """Whether no image so far is a near copy; if so, remember this one.

        Parameters
        ----------
        image : array of shape (3, height, width)
        """
        small = thumbnails(image[None])[0]
        bands = bands_of(small)
        if self._resembles(bands):
            return False
        self._remember(small, bands)
        return True

    def _resembles(self, bands: Array) -> bool:
        if not self.small:
            return False
        likeness = (np.array(self.flat) @ coarsened(bands[0])[shifts()].T).max(axis=1)
        nearest = np.argsort(-likeness)[:NEIGHBOURS]
        own = np.zeros(len(nearest), int)
        for place, (_, least) in enumerate(RANGES):
            compared = np.stack([bands[place], *(self.bands[each][place] for each in nearest)])
            others = np.arange(1, len(compared))
            if (correlations(compared, own, others) >= least).any():
                return True
        return False

    def _remember(self, small: Array, bands: Array) -> None:
        self.small.append(small)
        self.bands.append(bands)
        self.flat.append(coarsened(bands[0]))

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        return {"small": np.array(self.small, np.float32).reshape(-1, SIDE, SIDE)}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        for each in (self.small, self.bands, self.flat):
            each.clear()
        for small in state["small"]:
            self._remember(small, bands_of(small))


@cache
def blur(radius: float) -> Array:
    """A matrix that blurs the columns of a thumbnail: the filter of `details`, which is linear."""
    from scipy.ndimage import gaussian_filter1d

    return np.asarray(gaussian_filter1d(np.eye(SIDE), radius, axis=0, mode="nearest"))


@cache
def fading() -> Array:
    """Fades a thumbnail out at its border."""
    fade = np.sqrt(np.hanning(SIDE + 2)[1:-1])
    return np.outer(fade, fade)


@cache
def shifts() -> Array:
    """Places of the pixels of coarse details after all small shifts, one shift per row."""
    reach = SHIFT * COARSE // SIDE
    steps = range(-reach, reach + 1)
    places = np.arange(COARSE**2).reshape(COARSE, COARSE)
    return np.array([np.roll(places, (y, x), axis=(0, 1)).ravel() for y in steps for x in steps])


def bands_of(small: Array) -> Array:
    """The details of a thumbnail, one range of sizes after another, as in `scenes.details`.

    >>> from soda_tta.data.scenes import details
    >>> small = np.random.default_rng(0).random((1, SIDE, SIDE)).astype(np.float32)
    >>> bool(np.allclose(bands_of(small[0])[1], details(small, *RANGES[1][0])[0], atol=1e-5))
    True
    """
    bands = []
    for (fine, coarse), _ in RANGES:
        band = blur(fine) @ small @ blur(fine).T - blur(coarse) @ small @ blur(coarse).T
        band *= fading()
        band -= band.mean()
        norm = np.linalg.norm(band)
        bands.append(band / norm if norm > FLAT else np.zeros_like(band))
    return np.array(bands, np.float32)


def coarsened(band: Array) -> Array:
    """Details at a quarter of the pixels, as one row."""
    size = SIDE // COARSE
    return np.asarray(band.reshape(COARSE, size, COARSE, size).mean(axis=(1, 3)).ravel())

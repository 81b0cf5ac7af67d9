"""A corrupted version of a data set is a data set too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.data.corruptions import corrupt
from soda_tta.data.dataset import Dataset, Remembered
from soda_tta.data.images import Images, open_images
from soda_tta.types import Array


class CorruptedImages(Remembered):
    """Images corrupted when they are first asked for. Image i depends on the seed and on i alone, not on the batch."""

    def __init__(
        self,
        images: Images,
        corruption: str,
        severity: int,
        seed: int,
        constants: str | None,
        frost: Path | None,
    ) -> None:
        height, width = images.size
        super().__init__(len(images), (height, width))
        self.images, self.corruption, self.severity, self.seed = images, corruption, severity, seed
        self.constants, self.frost = constants, frost
        self._corrupt(
            np.empty((0, height, width, 3), np.uint8), 0
        )  # complains now of what cannot be done

    def _corrupt(self, pixels: Array, start: int) -> Array:
        return corrupt(
            pixels, self.corruption, self.severity, self.seed, self.constants, self.frost, start
        )

    def make(self, positions: Array) -> Array:
        clean = np.rint(self.images[positions].transpose(0, 2, 3, 1) * 255).astype(np.uint8)
        pixels = np.empty(clean.shape, np.uint8)
        breaks = np.flatnonzero(np.diff(positions) != 1) + 1
        for rows in np.split(np.arange(len(positions)), breaks) if len(positions) else ():
            pixels[rows] = self._corrupt(clean[rows], int(positions[rows[0]]))
        return pixels

    def name(self, index: int) -> str:
        return self.images.name(index)


class Corrupted(Dataset):
    """A data set as a camera in trouble would have taken it; labels, classes and names stay.

    >>> foggy = Corrupted(np.zeros((3, 32, 32, 3), np.uint8), "fog", severity=5)
    >>> foggy
    <images, fog 5: 3 images of 32x32, without labels>
    >>> bool((foggy[np.array([2])] == foggy[slice(0, 3)][2:]).all())
    True
    """

    def __init__(
        self,
        source: Any,
        corruption: str,
        severity: int = 5,
        seed: int = 0,
        *,
        constants: str | None = None,
        frost: Path | str | None = None,
    ) -> None:
        images = open_images(source)
        folder = None if frost is None else Path(frost)
        super().__init__(
            CorruptedImages(images, corruption, severity, seed, constants, folder),
            getattr(images, "labels", None),
            getattr(images, "classes", None),
            f"{getattr(images, 'title', 'images')}, {corruption} {severity}",
        )
        self.source = images

"""A corrupted copy of a data set, computed on the fly; it is a data set too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.data.corruptions import corrupt
from soda_tta.data.dataset import Dataset
from soda_tta.data.images import ArrayImages, Images
from soda_tta.data.lazy import LazyImages
from soda_tta.types import Array


class CorruptedImages(LazyImages):
    """Images corrupted on first use; image i depends on the seed and on i, not on the batch."""

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
        self.resize = images.resize
        self.table = images.table
        self.images = images
        self.corruption = corruption
        self.severity = severity
        self.seed = seed
        self.constants = constants
        self.frost = frost
        # wrong settings fail here, not at the first image
        self._corrupt(np.empty((0, height, width, 3), np.uint8), 0)

    def _corrupt(self, pixels: Array, start: int) -> Array:
        """Corrupt consecutive images, the first of which is at position `start`."""
        return corrupt(
            pixels, self.corruption, self.severity, self.seed, self.constants, self.frost, start
        )

    def compute(self, positions: Array) -> Array:
        clean = np.rint(self.images[positions].transpose(0, 2, 3, 1) * 255).astype(np.uint8)
        corrupted = np.empty(clean.shape, np.uint8)
        if not len(positions):
            return corrupted
        breaks = np.flatnonzero(np.diff(positions) != 1) + 1
        for rows in np.split(np.arange(len(positions)), breaks):
            corrupted[rows] = self._corrupt(clean[rows], int(positions[rows[0]]))
        return corrupted

    def decoding(self) -> dict[str, Any]:
        return self.images.decoding()

    def name(self, index: int) -> str:
        return self.images.name(index)

    def path(self, index: int) -> Path | None:
        return self.images.path(index)


class Corrupted(Dataset):
    """A data set under one of the 19 corruptions; labels, classes and names stay.

    Parameters
    ----------
    source : Images or array
        A data set, what `open_images` returns, or an array of images.
    corruption : str
        One of `soda_tta.data.corruptions.CORRUPTIONS`.
    severity : int, default 5
        From 1 to 5.
    seed : int, default 0
        Image i depends on the seed and on i only.
    constants : {"cifar", "imagenet"}, optional
        Strength of the corruption. Default: "cifar" up to 64 pixels, else "imagenet".
    frost : path, optional
        Folder of photographs for "frost". Default: frost is drawn.

    Examples
    --------
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
        images = source if isinstance(source, Images) else ArrayImages(np.asarray(source))
        folder = None if frost is None else Path(frost)
        super().__init__(
            CorruptedImages(images, corruption, severity, seed, constants, folder),
            getattr(images, "labels", None),
            getattr(images, "classes", None),
            f"{getattr(images, 'title', 'images')}, {corruption} {severity}",
        )
        self.source = images

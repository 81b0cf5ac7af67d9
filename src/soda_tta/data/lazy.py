"""Image sets whose pixels are computed on first use: decoded from files, or corrupted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from soda_tta.data.files import read_image
from soda_tta.data.images import Images
from soda_tta.data.resizing import Resize, size_text
from soda_tta.errors import ImageError
from soda_tta.types import Array

KEPT_BYTES = 2**30  # pixels stay in memory up to this size; larger sets are computed each time


class LazyImages(Images):
    """Images computed on first use, kept as 8-bit values while the whole set is small enough.

    Parameters
    ----------
    count : int
        Number of images.
    size : (int, int)
        Height and width in pixels.
    """

    def __init__(self, count: int, size: tuple[int, int]) -> None:
        self.count = count
        self.size = size
        self._computed = np.zeros(count, bool)
        small = count * size[0] * size[1] * 3 <= KEPT_BYTES
        # np.empty costs no memory until it is written to
        self._kept = np.empty((count, *size, 3), np.uint8) if small else None

    @abstractmethod
    def compute(self, positions: Array) -> Array:
        """The images at these positions as uint8 (n, height, width, 3)."""

    @property
    def fits_in_memory(self) -> bool:
        """Whether the pixels are kept once they are computed."""
        return self._kept is not None

    def preload(self) -> None:
        """Compute the whole set now if it is kept, so that broken files are found early."""
        if self.fits_in_memory:
            self._pixels(np.arange(self.count))

    def release(self) -> None:
        """Forget the pixels that are kept; they are computed again when they are needed."""
        if self._kept is not None:
            self._kept = np.empty_like(self._kept)
            self._computed[:] = False

    def __len__(self) -> int:
        return self.count

    def take(self, indices: Array | slice) -> Array:
        pixels = self._pixels(np.arange(self.count)[indices])
        return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32) / np.float32(255)

    def _pixels(self, positions: Array) -> Array:
        """8-bit pixels, from memory where they are kept."""
        if self._kept is None:
            return self.compute(positions)
        missing = np.unique(positions[~self._computed[positions]])
        if len(missing):
            self._kept[missing] = self.compute(missing)
            self._computed[missing] = True
        return np.asarray(self._kept[positions])


class FileImages(LazyImages):
    """Image files of one size, each decoded on first use.

    Parameters
    ----------
    paths : sequence of Path
        The files, in this order. The first one is decoded at once: it gives the size.
    resize : Resize, default Resize()
        Applied to every file. By default files stay as they are and must have one size.
    root : Path, optional
        Folder that `name` is relative to. Default: None, names are whole paths.
    table : Path, optional
        The CSV file that lists them. Default: None.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        resize: Resize | None = None,
        root: Path | None = None,
        table: Path | None = None,
    ) -> None:
        if not paths:
            raise ImageError("the list of files is empty.")
        self.paths = list(paths)
        self.resize = resize or Resize()
        self.root = root
        self.table = table
        height, width = read_image(self.paths[0], self.resize).shape[:2]
        super().__init__(len(self.paths), (height, width))

    def compute(self, positions: Array) -> Array:
        pixels = np.empty((len(positions), *self.size, 3), np.uint8)
        for row, position in enumerate(positions):
            pixels[row] = self._read(self.paths[position])
        return pixels

    def _read(self, path: Path) -> Array:
        image = read_image(path, self.resize)
        if image.shape[:2] != self.size:
            raise ImageError(
                f"the images differ in size: {self.paths[0]} is {size_text(self.size)}, {path} is "
                f"{size_text(image.shape[:2])}; pass size=224, for example, to resize them all."
            )
        return image

    def path(self, index: int) -> Path:
        return self.paths[index]

    def name(self, index: int) -> str:
        path = self.paths[index]
        if self.root is not None and path.is_relative_to(self.root):
            return str(path.relative_to(self.root))
        return str(path)

"""Image sets whose pixels are computed on first use: decoded from files, or corrupted."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from soda_tta.data.files import read_image
from soda_tta.data.images import Images
from soda_tta.data.resizing import Resize, size_text
from soda_tta.errors import ImageError
from soda_tta.types import Array

OnBadImage = Literal["fail", "skip"]
REMEDY = 'repair or remove the file, or leave it out with on_bad_image="skip".'
NAMED = 10  # files in a message
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
    on_bad_image : {"fail", "skip"}, optional
        "skip" decodes every file now and leaves out those that cannot be read; "fail" names that
        remedy in the error. Default: None, an error without that remedy.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        resize: Resize | None = None,
        root: Path | None = None,
        table: Path | None = None,
        on_bad_image: OnBadImage | None = None,
    ) -> None:
        if not paths:
            raise ImageError("the list of files is empty.")
        self.paths = list(paths)
        self.on_bad_image = on_bad_image
        self.resize = resize or Resize()
        self.root = root
        self.table = table
        if on_bad_image == "skip":
            self._leave_out_unreadable()
        height, width = self._decode(self.paths[0]).shape[:2]
        super().__init__(len(self.paths), (height, width))

    def compute(self, positions: Array) -> Array:
        pixels = np.empty((len(positions), *self.size, 3), np.uint8)
        for row, position in enumerate(positions):
            pixels[row] = self._read(self.paths[position])
        return pixels

    def _read(self, path: Path) -> Array:
        image = self._decode(path)
        if image.shape[:2] != self.size:
            raise ImageError(
                f"the images differ in size: {self.paths[0]} is {size_text(self.size)}, {path} is "
                f"{size_text(image.shape[:2])}; pass size=224, for example, to resize them all."
            )
        return image

    def _decode(self, path: Path) -> Array:
        """One file in its own size, with the remedy that the caller has if it cannot be read."""
        try:
            return read_image(path, self.resize)
        except ImageError as error:
            if self.on_bad_image is None:
                raise
            raise ImageError(f"{str(error).rstrip('.')}; {REMEDY}") from error

    def _leave_out_unreadable(self) -> None:
        """Keep the files that can be decoded, and warn with the names of the others."""
        total = len(self.paths)
        readable: list[Path] = []
        skipped: list[Path] = []
        problem: ImageError | None = None
        for path in self.paths:
            try:
                read_image(path, self.resize)
                readable.append(path)
            except ImageError as error:
                skipped.append(path)
                problem = problem or error
        if not readable:
            raise ImageError(f"none of the {total:,} files can be read. The first: {problem}")
        self.paths = readable
        self.skipped = [self._name_of(path) for path in skipped]
        if skipped:
            named = ", ".join(self.skipped[:NAMED])
            more = f" and {len(skipped) - NAMED:,} more" if len(skipped) > NAMED else ""
            warnings.warn(
                f"{len(skipped):,} of {total:,} files cannot be read and are left out: "
                f"{named}{more}.",
                stacklevel=4,
            )

    def path(self, index: int) -> Path:
        return self.paths[index]

    def name(self, index: int) -> str:
        return self._name_of(self.paths[index])

    def _name_of(self, path: Path) -> str:
        if self.root is not None and path.is_relative_to(self.root):
            return str(path.relative_to(self.root))
        return str(path)

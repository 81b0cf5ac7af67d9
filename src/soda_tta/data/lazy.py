"""Image sets whose pixels are computed on first use: decoded from files, or corrupted."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.data.colours import colour_text
from soda_tta.data.decoding import Decoded
from soda_tta.data.images import Images
from soda_tta.data.reading import Reading
from soda_tta.data.resizing import size_text
from soda_tta.errors import ImageError
from soda_tta.types import Array

REMEDY = 'repair or remove the file, or leave it out with on_bad_image="skip".'
# In the middle of a run, which cannot go on with other images.
LOST = "it could be read before: restore it, then run again; resume=True continues a run."
NAMED = 10  # files in a message
PARALLEL_PIXELS = 64 * 64  # smaller images spend their time in Python, which is one thread
AT_ONCE = 64  # images that are decoded ahead
KEPT_BYTES = 2**30  # pixels stay in memory up to this size; larger sets are computed each time


class LazyImages(Images):
    """Images computed on first use, kept as integers while the whole set is small enough.

    Parameters
    ----------
    count : int
        Number of images.
    size : (int, int)
        Height and width in pixels.
    dtype : numpy dtype, default uint8
        uint8 or uint16. Pixels of 8 bits become 16 when the first of those is computed.
    """

    def __init__(self, count: int, size: tuple[int, int], dtype: Any = np.uint8) -> None:
        self.count = count
        self.size = size
        self._computed = np.zeros(count, bool)
        small = count * size[0] * size[1] * 3 * np.dtype(dtype).itemsize <= KEPT_BYTES
        # np.empty costs no memory until it is written to
        self._kept = np.empty((count, *size, 3), dtype) if small else None

    @abstractmethod
    def compute(self, positions: Array) -> Array:
        """The images at these positions as uint8 or uint16 (n, height, width, 3)."""

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
        white = np.float32(np.iinfo(pixels.dtype).max)
        return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32) / white

    def _pixels(self, positions: Array) -> Array:
        """Pixels of 8 or 16 bits, from memory where they are kept."""
        if self._kept is None:
            return self.compute(positions)
        missing = np.unique(positions[~self._computed[positions]])
        if len(missing):
            pixels = self.compute(missing)
            if pixels.dtype != self._kept.dtype:
                self._kept = with_16_bits(self._kept)
                pixels = with_16_bits(pixels)
            self._kept[missing] = pixels
            self._computed[missing] = True
        return np.asarray(self._kept[positions])


def with_16_bits(pixels: Array) -> Array:
    """The same shares of white, exactly: 255 x 257 = 65,535."""
    if pixels.dtype == np.uint16:
        return pixels
    widened: Array = pixels.astype(np.uint16) * np.uint16(257)
    return widened


class FileImages(LazyImages):
    """Image files of one size, each decoded on first use.

    Parameters
    ----------
    paths : sequence of Path
        The files, in this order. The first one is decoded at once: it gives the size.
    reading : Reading, default Reading()
        How every file is read. By default files stay as they are and must have one size.
    root : Path, optional
        Folder that `name` is relative to. Default: None, names are whole paths.
    table : Path, optional
        The CSV file that lists them. Default: None.

    Attributes
    ----------
    kept : list of int
        Which of the files can be read, by position in `paths` as it was passed.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        reading: Reading | None = None,
        root: Path | None = None,
        table: Path | None = None,
    ) -> None:
        if not paths:
            raise ImageError("the list of files is empty.")
        self.paths = list(paths)
        self.kept = list(range(len(paths)))
        self.reading = reading or Reading()
        self.resize = self.reading.resize
        self.root = root
        self.table = table
        self._noted: dict[str, set[Path]] = {}
        if self.reading.on_bad_image == "skip":
            self._leave_out_unreadable()
        self._was_read = np.zeros(len(self.paths), bool)
        first = self._decode(0).pixels
        super().__init__(len(self.paths), first.shape[:2], first.dtype)

    def compute(self, positions: Array) -> Array:
        pixels = np.empty((len(positions), *self.size, 3), np.uint8)
        for row, image in enumerate(self._read_all(positions)):
            if image.dtype != np.uint8:
                pixels = with_16_bits(pixels)
            pixels[row] = image if image.dtype == pixels.dtype else with_16_bits(image)
        return pixels

    def _read_all(self, positions: Array) -> Iterator[Array]:
        """The images in this order; large ones are decoded on all cores."""
        threads = os.cpu_count() or 1
        if threads == 1 or len(positions) < 2 or self.size[0] * self.size[1] < PARALLEL_PIXELS:
            yield from (self._read(position, self._decode(position)) for position in positions)
            return
        with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
            # `decode` sets this filter, too; filters belong to all threads
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            try:
                for start in range(0, len(positions), AT_ONCE):
                    some = positions[start : start + AT_ONCE]
                    for position, decoded in zip(some, pool.map(self._decode, some), strict=True):
                        yield self._read(position, decoded)
            finally:
                pool.shutdown(cancel_futures=True)

    def _read(self, position: int, decoded: Decoded) -> Array:
        path = self.paths[position]
        image, notes = decoded
        for note in notes:
            self._noted.setdefault(note, set()).add(path)
        if image.shape[:2] != self.size:
            raise ImageError(
                f"the images differ in size: {self.paths[0]} is {size_text(self.size)}, {path} is "
                f"{size_text(image.shape[:2])}; pass size=224, for example, to resize them all."
            )
        return image

    def _decode(self, position: int) -> Decoded:
        """One file in its own size, with the remedy that the caller has if it cannot be read."""
        try:
            decoded = self.reading(self.paths[position])
        except ImageError as error:
            remedy = REMEDY if self.reading.on_bad_image is not None else ""
            if self._was_read[position]:
                remedy = LOST
            if not remedy:
                raise
            raise ImageError(f"{str(error).rstrip('.')}; {remedy}") from error
        self._was_read[position] = True
        return decoded

    def _leave_out_unreadable(self) -> None:
        """Keep the files that can be decoded, and warn with the names of the others."""
        total = len(self.paths)
        readable: list[int] = []
        skipped: list[Path] = []
        problem: ImageError | None = None
        for position, path in enumerate(self.paths):
            try:
                self.reading(path)
                readable.append(position)
            except ImageError as error:
                skipped.append(path)
                problem = problem or error
        if not readable:
            raise ImageError(f"none of the {total:,} files can be read. The first: {problem}")
        self.kept = readable
        self.paths = [self.paths[position] for position in readable]
        self.skipped = [self._name_of(path) for path in skipped]
        if skipped:
            named = ", ".join(self.skipped[:NAMED])
            more = f" and {len(skipped) - NAMED:,} more" if len(skipped) > NAMED else ""
            warnings.warn(
                f"{len(skipped):,} of {total:,} files cannot be read and are left out: "
                f"{named}{more}.",
                stacklevel=4,
            )

    def decoding(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if self._noted:
            counts = {note: len(paths) for note, paths in sorted(self._noted.items())}
            facts["decoding"] = counts
            if any(note.startswith("transparent") for note in counts):
                facts["over"] = colour_text(self.reading.over)
        return facts

    def path(self, index: int) -> Path:
        return self.paths[index]

    def name(self, index: int) -> str:
        return self._name_of(self.paths[index])

    def _name_of(self, path: Path) -> str:
        if self.root is not None and path.is_relative_to(self.root):
            return str(path.relative_to(self.root))
        return str(path)

"""Images from Python objects: sequences of images, data sets of PyTorch, and iterators."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.data.decoding import orientation_of, read_image, rgb_pixels, turned
from soda_tta.data.images import ArrayImages, Images
from soda_tta.data.resizing import size_text
from soda_tta.errors import ImageError
from soda_tta.types import Array


class SequenceImages(Images):
    """Anything with a length and an index whose items are images or (image, label) pairs.

    Labels are ignored.

    Parameters
    ----------
    sequence : object with ``__len__`` and ``__getitem__``
        For example a list of arrays or a ``torch.utils.data.Dataset``.
    """

    def __init__(self, sequence: Any) -> None:
        if not len(sequence):
            raise ImageError("the data set is empty.")
        self.sequence = sequence
        self.size = image_of(sequence[0], 0).shape[1:]

    def __len__(self) -> int:
        return len(self.sequence)

    def take(self, indices: Array | slice) -> Array:
        positions = np.arange(len(self))[indices]
        images = [image_of(self.sequence[int(i)], int(i), self.size) for i in positions]
        return np.stack(images) if images else np.zeros((0, 3, *self.size), np.float32)


def spool(iterable: Iterable[Any]) -> ArrayImages:
    """Write an iterator's images once to an unnamed temporary file, and memory-map it.

    Items are images, batches of images, or pairs of either with labels, which are ignored.
    """
    file = tempfile.TemporaryFile(prefix="soda-tta-")  # noqa: SIM115 - the map keeps it open
    count = 0
    size = None
    for item in iterable:
        images = item[0] if isinstance(item, tuple | list) else item
        is_batch = getattr(images, "ndim", 3) == 4
        for image in images if is_batch else [images]:
            pixels = image_of(image, count, size)
            size = pixels.shape[1:]
            file.write(pixels.tobytes())
            count += 1
    if size is None:
        raise ImageError("the iterable gave no image.")
    file.flush()
    return ArrayImages(np.memmap(file, np.float32, "r", shape=(count, 3, *size)), "the iterable")


def image_of(item: Any, index: int, size: tuple[int, ...] | None = None) -> Array:
    """One item as float32 (3, height, width): the first part of a pair; a path is opened."""
    image = item[0] if isinstance(item, tuple | list) else item
    if isinstance(image, str | Path):
        image = _as_shares(read_image(Path(image)))
    elif isinstance(image, Image.Image):
        image.load()
        image = _as_shares(turned(rgb_pixels(image)[0], orientation_of(image)))
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = pixels[None]
    planes: Array = ArrayImages(pixels[None], f"image {index}")[slice(0, 1)][0]
    if size is not None and planes.shape[1:] != size:
        raise ImageError(
            f"image {index} is {size_text(planes.shape[1:])}, the first is {size_text(size)}; "
            "resize them to one size."
        )
    return planes


def _as_shares(pixels: Array) -> Array:
    """Decoded pixels of 8 or 16 bits as shares of 1."""
    shares: Array = pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    return shares

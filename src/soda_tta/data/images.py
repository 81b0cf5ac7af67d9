"""Sets of images: indexable and lazy, float32 NCHW RGB in [0, 1] when they are read."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError
from soda_tta.types import Array

AT_ONCE_FLOATS = 2**22  # one piece of a pass: 16 MB, 1,365 images of 32 px, 27 images of 224 px


class Images(ABC):
    """A set of images of one size; every image set of this package derives from it.

    ``len(images)`` is the number of images and ``images[indices]`` reads some of them as float32
    (n, 3, height, width) in [0, 1]. The set is not an array, because it need not fit in memory;
    ``images[:]`` is an array of all of them.

    Attributes
    ----------
    size : (int, int)
        Height and width in pixels.
    resize : Resize
        What was done to the files before; by default nothing.
    table : Path or None
        The CSV file that lists the images, if there is one.
    skipped : sequence of str
        Names of the files that were left out because they cannot be read; by default none.
    sample : dict or None
        Of how many images these were chosen at random, and how; by default None, these are all.

    Examples
    --------
    >>> from soda_tta.data import open_images
    >>> images = open_images(np.zeros((5, 8, 8, 3), np.uint8))
    >>> len(images), images.size, images[[0, 3]].shape
    (5, (8, 8), (2, 3, 8, 8))
    """

    size: tuple[int, int]
    resize: Resize = Resize()
    table: Path | None = None
    skipped: Sequence[str] = ()
    sample: dict[str, Any] | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, indices: Array | slice) -> Array:
        """The images at these positions, float32 (n, 3, height, width) in [0, 1]."""

    def __getitem__(self, indices: Array | slice | Sequence[int]) -> Array:
        if isinstance(indices, slice):
            return self.take(indices)
        # numpy would apply an index of several axes to pixels; here it would select other images
        if isinstance(indices, tuple) or np.ndim(np.asarray(indices, object)) != 1:
            raise ImageError(
                "index images by a slice or a list of positions; "
                "images[:] is an array of all of them."
            )
        positions = np.asarray(indices)
        return self.take(positions if positions.size else positions.astype(int))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a set of images is not an array; converting it always makes a copy.")
        return np.asarray(self[:], dtype)

    def name(self, index: int) -> str:
        """What the image at this position is called in tables; by default its position."""
        return str(index)

    def path(self, index: int) -> Path | None:
        """The file of the image at this position; None if it does not come from a file."""
        return None

    @property
    def at_once(self) -> int:
        """How many images to read at a time in a pass over the whole set."""
        return max(1, min(512, AT_ONCE_FLOATS // (3 * self.size[0] * self.size[1])))

    def fingerprint(self) -> str:
        """A SHA-256 hash of every pixel, in order."""
        digest = hashlib.sha256(repr((len(self), self.size)).encode())
        for start in range(0, len(self), self.at_once):
            digest.update(self[slice(start, start + self.at_once)].tobytes())
        return f"sha256:{digest.hexdigest()}"

    def decoding(self) -> dict[str, Any]:
        """What a card says about files that were not plain 8-bit RGB, among those read so far."""
        return {}

    def card(self) -> dict[str, Any]:
        """What a protocol card says about the images; reads every pixel for the fingerprint.

        >>> from soda_tta.data import open_images
        >>> card = open_images(np.zeros((5, 8, 8, 3), np.uint8)).card()
        >>> card["count"], card["size"], card["resize"]
        (5, [8, 8], 'as they are')
        """
        facts = {
            "count": len(self),
            "size": list(self.size),
            "fingerprint": self.fingerprint(),
            "resize": str(self.resize),
        }
        facts |= self.decoding()  # the fingerprint has read every file
        if self.sample is not None:
            facts["sample"] = self.sample
        return {**facts, "skipped": list(self.skipped)} if self.skipped else facts


class Subset(Images):
    """Some images of a set, by position.

    Parameters
    ----------
    images : Images
        The whole set.
    positions : array of int
        Which images, in which order; at least one.
    """

    def __init__(self, images: Images, positions: Array) -> None:
        if not len(positions):
            raise ImageError("no image is selected; a data set holds at least one.")
        self.images = images
        self.positions = positions
        self.size = images.size
        self.resize = images.resize
        self.table = images.table

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, indices: Array | slice) -> Array:
        return self.images[self.positions[indices]]

    def decoding(self) -> dict[str, Any]:
        return self.images.decoding()

    def name(self, index: int) -> str:
        return self.images.name(int(self.positions[index]))

    def path(self, index: int) -> Path | None:
        return self.images.path(int(self.positions[index]))


class ArrayImages(Images):
    """An array in memory or memory-mapped.

    Parameters
    ----------
    array : ndarray
        uint8, or floats in [0, 1]; (n, height, width, channels), (n, channels, height, width) or
        (n, height, width), with 3 channels or 1 (grey, which is repeated).
    where : str, default "the array"
        What the array is called in error messages.
    """

    def __init__(self, array: Array, where: str = "the array") -> None:
        if array.dtype != np.uint8 and array.dtype.kind != "f":
            raise ImageError(f"{where} holds {array.dtype}; images are uint8, or floats in [0, 1].")
        self.array = _with_four_axes(array, where)
        self.where = where
        shape = self.array.shape
        self.channels_last = shape[1] not in (1, 3)
        if self.channels_last and shape[3] not in (1, 3):
            raise ImageError(
                f"{where} has shape {shape}; one of its axes must hold 3 channels (or 1, grey)."
            )
        self.size = (shape[1], shape[2]) if self.channels_last else (shape[2], shape[3])

    def __len__(self) -> int:
        return len(self.array)

    def take(self, indices: Array | slice) -> Array:
        images = np.asarray(self.array[indices])
        if self.channels_last:
            images = images.transpose(0, 3, 1, 2)
        if images.dtype == np.uint8:
            images = images.astype(np.float32) / np.float32(255)
        elif images.size and not (images.min() >= 0 and images.max() <= 1):  # also catches NaN
            raise ImageError(
                f"{self.where} holds floats from {float(images.min()):.4g} to "
                f"{float(images.max()):.4g}; images are uint8, or floats in [0, 1]."
            )
        if images.shape[1] == 1:
            images = np.repeat(images, 3, axis=1)
        # a copy: the caller may write into it, and torch takes no negative strides
        return np.array(images, np.float32, order="C")


def _with_four_axes(array: Array, where: str) -> Array:
    """The array with an axis for the channels; one image or an empty set is refused."""
    if array.ndim == 3:
        if 3 in (array.shape[0], array.shape[2]):
            raise ImageError(
                f"{where} has shape {array.shape}; for one image pass array[None], "
                "for grey images array[:, None]."
            )
        array = array[:, None]
    if array.ndim != 4:
        raise ImageError(f"{where} has shape {array.shape}; a set of images has four dimensions.")
    if not array.size:
        raise ImageError(f"{where} has shape {array.shape}; it holds no image.")
    return array

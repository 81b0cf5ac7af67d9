"""Images with labels. Labels are for measuring only; no method reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.data.images import Images, Subset
from soda_tta.data.resizing import size_text
from soda_tta.errors import ImageError
from soda_tta.types import Array


class Dataset(Images):
    """A set of images that knows its labels.

    Parameters
    ----------
    images : Images
        What `open_images` returns.
    labels : sequence of int, optional
        One class number per image, from 0. Default: None, the labels are unknown.
    classes : sequence of str, optional
        Class names in the order of their numbers. Default: None.
    title : str, default "images"
        What the set is called in tables and messages.

    Examples
    --------
    >>> from soda_tta.data import open_images
    >>> images = open_images(np.zeros((2, 8, 8, 3), np.uint8))
    >>> Dataset(images, labels=[1, 0], classes=["cat", "dog"], title="pets")
    <pets: 2 images of 8x8, 2 classes>
    """

    def __init__(
        self,
        images: Images,
        labels: Sequence[int] | Array | None = None,
        classes: Sequence[str] | None = None,
        title: str = "images",
    ) -> None:
        self.images = images
        self.size = images.size
        self.resize = images.resize
        self.table = images.table
        self.skipped = images.skipped
        self.title = title
        self.classes = None if classes is None else tuple(classes)
        self.labels: Array | None = None
        if labels is not None:
            self.labels = check_labels(labels, len(images), self.classes, title)

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: Array | slice) -> Array:
        return self.images[indices]

    def decoding(self) -> dict[str, Any]:
        return self.images.decoding()

    def name(self, index: int) -> str:
        return self.images.name(index)

    def path(self, index: int) -> Path | None:
        return self.images.path(index)

    def pixels(self, indices: Array | slice = slice(None)) -> Array:
        """Some images as uint8 (n, height, width, 3), the form they are stored and corrupted in.

        Parameters
        ----------
        indices : slice or array of int, default slice(None)
            Positions of the images; by default all.
        """
        levels: Array = np.rint(self[indices].transpose(0, 2, 3, 1) * 255)
        return levels.astype(np.uint8)

    def subset(self, indices: Array | slice | Sequence[int]) -> Dataset:
        """Some of the images with their labels and names; pixels stay lazy.

        Parameters
        ----------
        indices : slice or sequence of int
            Positions of the images, in the wanted order.
        """
        if not isinstance(indices, slice | np.ndarray):
            indices = np.array(indices, int)
        positions = np.arange(len(self))[indices]
        return Dataset(
            Subset(self.images, positions),
            None if self.labels is None else self.labels[positions],
            self.classes,
            f"{self.title}, {len(positions)} of {len(self)}",
        )

    def __repr__(self) -> str:
        summary = "without labels"
        if self.labels is not None:
            summary = f"{len(self.classes or np.unique(self.labels))} classes"
        return f"<{self.title}: {len(self)} images of {size_text(self.size)}, {summary}>"


def check_labels(
    labels: Sequence[int] | Array, count: int, classes: Sequence[str] | None, where: str
) -> Array:
    """The labels as int64; fails unless every image has one and every label has a class."""
    numbers = np.asarray(labels)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ImageError(
            f"{where}: labels are {numbers.dtype} of shape {numbers.shape}; "
            "pass one whole number per image."
        )
    if len(numbers) != count:
        raise ImageError(
            f"{where}: {count} images but {len(numbers)} labels; pass one label per image."
        )
    if count and (numbers.min() < 0 or (classes is not None and numbers.max() >= len(classes))):
        highest = "" if classes is None else f" to {len(classes) - 1}, one per class"
        raise ImageError(
            f"{where}: labels run from {numbers.min()} to {numbers.max()}; "
            f"they must run from 0{highest}."
        )
    return numbers.astype(np.int64)

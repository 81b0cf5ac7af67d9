"""A data set: images that know their labels. Labels are for measuring only; nothing that adapts looks at them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from soda_tta.data.images import KEPT_BYTES, Images, shape_text
from soda_tta.errors import ImageError
from soda_tta.types import Array


class Dataset(Images):
    """Images with `labels` (int64, or None), the names of the `classes` (or None) and a `title`.

    >>> from soda_tta.data import open_images
    >>> Dataset(open_images(np.zeros((2, 8, 8, 3), np.uint8)), labels=[1, 0], classes=["cat", "dog"], title="pets")
    <pets: 2 images of 8x8, 2 classes>
    """

    def __init__(
        self,
        images: Images,
        labels: Sequence[int] | Array | None = None,
        classes: Sequence[str] | None = None,
        title: str = "images",
    ) -> None:
        self.images, self.title = images, title
        self.classes = None if classes is None else tuple(classes)
        self.labels = (
            None if labels is None else check_labels(labels, len(images), self.classes, title)
        )
        self.size = images.size

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: Array | slice) -> Array:
        return self.images[indices]

    def name(self, index: int) -> str:
        return self.images.name(index)

    def pixels(self, indices: Array | slice = slice(None)) -> Array:
        """These images as uint8 (n, height, width, 3), which is how they are stored and corrupted."""
        scaled: Array = np.rint(self[indices].transpose(0, 2, 3, 1) * 255)
        return scaled.astype(np.uint8)

    def subset(self, indices: Array | slice | Sequence[int]) -> Dataset:
        """Some of the images, with their labels and names; still lazy."""
        everything = np.arange(len(self))
        chosen = (
            everything[indices]
            if isinstance(indices, slice | np.ndarray)
            else everything[np.array(indices, int)]
        )
        labels = None if self.labels is None else self.labels[chosen]
        return Dataset(
            Chosen(self.images, chosen),
            labels,
            self.classes,
            f"{self.title}, {len(chosen)} of {len(self)}",
        )

    def __repr__(self) -> str:
        known = (
            "without labels"
            if self.labels is None
            else f"{len(self.classes or np.unique(self.labels))} classes"
        )
        return f"<{self.title}: {len(self)} images of {shape_text(self.size)}, {known}>"


class Chosen(Images):
    """Some images of a set, by position."""

    def __init__(self, images: Images, positions: Array) -> None:
        if not len(positions):
            raise ImageError("no image was chosen; a data set holds at least one.")
        self.images, self.positions, self.size = images, positions, images.size

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, indices: Array | slice) -> Array:
        return self.images[self.positions[indices]]

    def name(self, index: int) -> str:
        return self.images.name(int(self.positions[index]))


class Remembered(Images):
    """Images made when first asked for, and kept as bytes as long as the whole set is small enough for that."""

    def __init__(self, count: int, size: tuple[int, int]) -> None:
        self.count, self.size = count, size
        self._made = np.zeros(count, bool)
        small = count * size[0] * size[1] * 3 <= KEPT_BYTES
        self._kept = (
            np.empty((count, *size, 3), np.uint8) if small else None
        )  # costs no memory until written to

    @abstractmethod
    def make(self, positions: Array) -> Array:
        """These images as uint8 (n, height, width, 3)."""

    def __len__(self) -> int:
        return self.count

    def take(self, indices: Array | slice) -> Array:
        return as_floats(self._bytes(np.arange(self.count)[indices]))

    def _bytes(self, positions: Array) -> Array:
        if self._kept is None:
            return self.make(positions)
        missing = np.unique(positions[~self._made[positions]])
        if len(missing):
            self._kept[missing] = self.make(missing)
            self._made[missing] = True
        return np.asarray(self._kept[positions])


class Pictures(Remembered):
    """Image files of one size, each decoded when it is first asked for."""

    def __init__(self, paths: Sequence[Path], read: Callable[[Path], Array], root: Path) -> None:
        self.paths, self.read, self.root = list(paths), read, root
        first = read(self.paths[0])
        super().__init__(len(self.paths), (first.shape[0], first.shape[1]))

    def make(self, positions: Array) -> Array:
        pixels = np.empty((len(positions), *self.size, 3), np.uint8)
        for row, position in enumerate(positions):
            image = self.read(self.paths[position])
            if image.shape[:2] != self.size:
                raise ImageError(
                    f"the images differ in size: {self.paths[0]} is {shape_text(self.size)}, {self.paths[position]} is "
                    f"{shape_text(image.shape[:2])}; pass size=224 (or --size 224) to resize them all."
                )
            pixels[row] = image
        return pixels

    def name(self, index: int) -> str:
        path = self.paths[index]
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)


def as_floats(pixels: Array) -> Array:
    """uint8 (n, height, width, 3) as float32 (n, 3, height, width) in [0, 1]."""
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32) / np.float32(255)


def check_labels(
    labels: Sequence[int] | Array, count: int, classes: Sequence[str] | None, where: str
) -> Array:
    """The labels as int64; fails unless there is a whole number for every image, and a name for every number."""
    numbers = np.asarray(labels)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ImageError(
            f"{where}: labels are {numbers.dtype} of shape {numbers.shape}; one whole number an image is needed."
        )
    if len(numbers) != count:
        raise ImageError(
            f"{where}: {count} images but {len(numbers)} labels; they must match, one label an image."
        )
    if count and (numbers.min() < 0 or (classes is not None and numbers.max() >= len(classes))):
        highest = "" if classes is None else f" to {len(classes) - 1}, the number of classes"
        raise ImageError(
            f"{where}: labels run from {numbers.min()} to {numbers.max()}; they must run from 0{highest}."
        )
    return numbers.astype(np.int64)

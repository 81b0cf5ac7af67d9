"""Images in, whatever they come as: indexable, lazy, float32 NCHW RGB in [0, 1] when they are taken out."""

from __future__ import annotations

import hashlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.data.files import SUFFIXES, as_rgb, find_image_files, read_image
from soda_tta.errors import ImageError
from soda_tta.types import Array

KEPT_BYTES = (
    2**30
)  # decoded images are kept in memory up to this; beyond, files are decoded each time
AT_ONCE_FLOATS = (
    2**22
)  # a piece of a set that is walked through: 16 MB, 1,365 images of 32 px, 27 of 224 px


class Images(ABC):
    """A set of images of one size: `len(images)`, `images[indices] -> float32 (n, 3, height, width)`.

    Not an array, because it need not fit in memory: `images[:]` is one, of all of them.
    """

    size: tuple[int, int]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, indices: Array | slice) -> Array:
        """The images at these places, float32 (n, 3, height, width) in [0, 1]."""

    def __getitem__(self, indices: Array | slice | Sequence[int]) -> Array:
        if isinstance(indices, slice):
            return self.take(indices)
        # an index of several axes would be taken for one of images, and quietly show others
        if isinstance(indices, tuple) or np.ndim(np.asarray(indices, object)) != 1:
            raise ImageError(
                "images are taken by a slice or a list of places; images[:] is an array of all of them."
            )
        places = np.asarray(indices)
        return self.take(places if places.size else places.astype(int))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("images are no array; one of them is always a copy.")
        return np.asarray(self[:], dtype)

    def name(self, index: int) -> str:
        """What this image is called in tables."""
        return str(index)

    @property
    def at_once(self) -> int:
        """How many images to take at a time when walking through all of them."""
        return max(1, min(512, AT_ONCE_FLOATS // (3 * self.size[0] * self.size[1])))

    def card(self) -> dict[str, Any]:
        """What identifies these images on a protocol card."""
        return {"count": len(self), "size": list(self.size), "fingerprint": self.fingerprint()}

    def fingerprint(self) -> str:
        """A hash of every pixel, in order."""
        digest = hashlib.sha256(repr((len(self), self.size)).encode())
        for start in range(0, len(self), self.at_once):
            digest.update(self[slice(start, start + self.at_once)].tobytes())
        return f"sha256:{digest.hexdigest()}"


class ArrayImages(Images):
    """An array, in memory or memory-mapped: bytes or floats, channels first or last, colour or grey."""

    def __init__(self, array: Array, where: str = "the array") -> None:
        if array.dtype != np.uint8 and array.dtype.kind != "f":
            raise ImageError(f"{where} holds {array.dtype}; images are uint8, or floats in [0, 1].")
        if array.ndim == 3:
            if 3 in (array.shape[0], array.shape[2]):
                raise ImageError(
                    f"{where} has shape {array.shape}; for one image pass array[None], for grey ones array[:, None]."
                )
            array = array[:, None]
        if array.ndim != 4:
            raise ImageError(
                f"{where} has shape {array.shape}; a set of images has four dimensions."
            )
        if not array.size:
            raise ImageError(f"{where} has shape {array.shape}; it holds no image.")
        self.last = array.shape[1] not in (1, 3)
        if self.last and array.shape[3] not in (1, 3):
            raise ImageError(
                f"{where} has shape {array.shape}; one of its axes must hold 3 channels (or 1, grey)."
            )
        self.array, self.where = array, where
        self.size = (
            (array.shape[1], array.shape[2]) if self.last else (array.shape[2], array.shape[3])
        )

    def __len__(self) -> int:
        return len(self.array)

    def take(self, indices: Array | slice) -> Array:
        images = np.asarray(self.array[indices])
        if self.last:
            images = images.transpose(0, 3, 1, 2)
        if images.dtype == np.uint8:
            images = images.astype(np.float32) / np.float32(255)
        elif images.size and not (images.min() >= 0 and images.max() <= 1):  # also catches NaN
            low, high = float(images.min()), float(images.max())
            raise ImageError(
                f"{self.where} holds floats from {low:.4g} to {high:.4g}; images are uint8, or floats in [0, 1]."
            )
        if images.shape[1] == 1:
            images = np.repeat(images, 3, axis=1)
        return np.array(
            images, np.float32, order="C"
        )  # a copy: never the caller's memory, never a negative stride


class FileImages(Images):
    """Image files, decoded when asked for; small sets are decoded once and kept."""

    def __init__(
        self, paths: Sequence[Path], size: tuple[int, int] | None = None, root: Path | None = None
    ) -> None:
        if not paths:
            raise ImageError("the list of files is empty.")
        self.paths, self.root = list(paths), root
        self.size = size or read_image(self.paths[0]).shape[:2]
        self.wanted = size
        small = len(paths) * self.size[0] * self.size[1] * 3 <= KEPT_BYTES
        self.kept = np.stack([self._read(path) for path in self.paths]) if small else None

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, indices: Array | slice) -> Array:
        if self.kept is not None:
            pixels = self.kept[indices]
        else:
            chosen = np.arange(len(self))[indices]
            pixels = (
                np.stack([self._read(self.paths[i]) for i in chosen])
                if len(chosen)
                else np.zeros((0, *self.size, 3))
            )
        return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32) / np.float32(255)

    def _read(self, path: Path) -> Array:
        image = read_image(path, self.wanted)
        if image.shape[:2] != self.size:
            raise ImageError(
                f"the images differ in size: {self.paths[0]} is {shape_text(self.size)}, {path} is "
                f"{shape_text(image.shape[:2])}; pass --size to resize them all."
            )
        return image

    def name(self, index: int) -> str:
        path = self.paths[index]
        return str(path.relative_to(self.root)) if self.root else str(path)


class DatasetImages(Images):
    """Anything with a length and an index whose items are images, or (image, label) pairs; labels are not looked at."""

    def __init__(self, dataset: Any) -> None:
        if not len(dataset):
            raise ImageError("the data set is empty.")
        self.dataset = dataset
        self.size = one_image(dataset[0], 0).shape[1:]

    def __len__(self) -> int:
        return len(self.dataset)

    def take(self, indices: Array | slice) -> Array:
        chosen = np.arange(len(self))[indices]
        images = [one_image(self.dataset[int(i)], int(i), self.size) for i in chosen]
        return np.stack(images) if images else np.zeros((0, 3, *self.size), np.float32)


def open_images(source: Any, size: int | tuple[int, int] | None = None) -> Images:
    """Images from an array, a folder, a list of files, an .npy / .npz file, a data set or any iterable.

    `size` resizes files (shorter side, then centre crop). An iterable without an index is written once to a
    temporary file and read from there, so that it need not fit in memory.

    >>> open_images(np.zeros((5, 8, 8, 3), np.uint8))[slice(0, 2)].shape
    (2, 3, 8, 8)
    """
    wanted = None if size is None else check_size(size)
    images = _open(source, wanted)
    if wanted is not None and tuple(images.size) != wanted:
        raise ImageError(
            f"the images are {shape_text(images.size)}; --size resizes files only: resize these yourself."
        )
    return images


def _open(source: Any, wanted: tuple[int, int] | None) -> Images:
    if isinstance(source, Images):
        return source
    if isinstance(source, str | Path):
        return _from_path(Path(source), wanted)
    if hasattr(source, "__array__") and not isinstance(source, list | tuple):
        return ArrayImages(np.asanyarray(source))
    if (
        isinstance(source, list | tuple)
        and source
        and all(isinstance(item, str | Path) for item in source)
    ):
        return FileImages([Path(item) for item in source], wanted)
    indexed = hasattr(source, "__len__") and hasattr(source, "__getitem__")
    if isinstance(source, Mapping) or not (indexed or isinstance(source, Iterable)):
        raise ImageError(
            f"{type(source).__name__} is no set of images; give an array, a folder, files or a data set."
        )
    return DatasetImages(source) if indexed else _spooled(source)


def _from_path(path: Path, size: tuple[int, int] | None) -> Images:
    if path.is_dir():
        return FileImages(find_image_files(path), size, root=path)
    if not path.exists():
        raise ImageError(
            f"{path} does not exist; give a folder of images, an .npy or an .npz file."
        )
    if path.suffix in (".npy", ".npz"):
        return ArrayImages(_load_array(path), str(path))
    if path.suffix.lower() in SUFFIXES:
        return FileImages([path], size)
    raise ImageError(f"{path} is not a folder, an .npy, an .npz or an image file.")


def _load_array(path: Path) -> Array:
    """The one array of an .npy file, mapped, or the array `images` of an .npz file."""
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            if "images" in loaded:
                return np.asarray(loaded["images"])
            names = ", ".join(loaded)
    except Exception as error:  # a damaged archive fails in many ways
        raise ImageError(f"{path} cannot be read as an array of images: {error}") from error
    raise ImageError(f"{path} holds no array 'images' (it has {names}).")


def _spooled(source: Iterable[Any]) -> Images:
    """Write a stream once into a temporary file that vanishes with the process, and map it."""
    file = tempfile.TemporaryFile(prefix="soda-tta-")  # noqa: SIM115 - kept open by the map
    count, size = 0, None
    for item in source:
        images = (
            item[0] if isinstance(item, tuple | list) else item
        )  # without the labels, of a batch or of an image
        for image in images if getattr(images, "ndim", 3) == 4 else [images]:
            pixels = one_image(image, count, size)
            size = pixels.shape[1:]
            file.write(pixels.tobytes())
            count += 1
    if size is None:
        raise ImageError("the iterable gave no image.")
    file.flush()
    return ArrayImages(np.memmap(file, np.float32, "r", shape=(count, 3, *size)), "the iterable")


def one_image(item: Any, index: int, size: tuple[int, ...] | None = None) -> Array:
    """One item of a data set as float32 CHW; of a pair, the first part is the image; a path is opened."""
    image = item[0] if isinstance(item, tuple | list) else item
    if isinstance(image, str | Path):
        image = read_image(Path(image))
    pixels = np.asarray(as_rgb(image) if isinstance(image, Image.Image) else image)
    if pixels.ndim == 2:
        pixels = pixels[None]
    chw: Array = ArrayImages(pixels[None], f"image {index}")[slice(0, 1)][0]
    if size is not None and chw.shape[1:] != size:
        raise ImageError(
            f"image {index} is {shape_text(chw.shape[1:])}, the first is {shape_text(size)}; resize them."
        )
    return chw


def check_size(size: int | Sequence[int]) -> tuple[int, int]:
    """One number, or height and width."""
    both = (size, size) if isinstance(size, int) else tuple(size)
    if len(both) != 2 or min(both) < 1:
        raise ImageError(f"size {size} makes no sense; give one number, or height and width.")
    return int(both[0]), int(both[1])


def shape_text(size: Sequence[int]) -> str:
    return f"{size[1]}x{size[0]}"

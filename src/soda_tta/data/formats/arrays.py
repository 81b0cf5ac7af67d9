"""Arrays in .npy and .npz files; pickles inside them are never opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from soda_tta.data.dataset import Dataset
from soda_tta.data.images import ArrayImages
from soda_tta.errors import ImageError
from soda_tta.types import Array


def read_images(file: Path) -> Array:
    """The one array of an .npy file, memory-mapped, or the array `images` of an .npz file."""
    try:
        content = np.load(file, mmap_mode="r", allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            if "images" in content:
                return np.asarray(content["images"])
            names = ", ".join(content)
    except Exception as error:  # a damaged archive fails in many ways
        raise ImageError(f"{file} cannot be read as an array of images: {error}") from error
    raise ImageError(f"{file} holds no array 'images' (it has {names}).")


def read_labels(file: Path) -> Array | None:
    """The array `labels` of an .npz file; None where there is none."""
    try:
        content = np.load(file, mmap_mode="r", allow_pickle=False)
        if isinstance(content, np.ndarray):
            return None
        with content:
            return np.asarray(content["labels"]) if "labels" in content else None
    except Exception as error:  # a damaged archive fails in many ways
        raise ImageError(f"{file} cannot be read as an array of labels: {error}") from error


def read_array(file: Path) -> Array:
    """The array of an .npy file, memory-mapped."""
    try:
        return np.asanyarray(np.load(file, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # a damaged file fails in many ways
        raise ImageError(f"{file} cannot be read as an array: {error}") from error


def labelled(
    images: ArrayImages,
    labels: Array | None,
    classes: Sequence[str] | None,
    title: str,
    file: Path,
) -> Dataset:
    """A data set whose errors about labels name the file they come from."""
    dataset = Dataset(images, labels, classes, title=str(file))
    dataset.title = title
    return dataset

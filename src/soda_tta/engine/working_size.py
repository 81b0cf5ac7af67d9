"""The size that images are worked on in: the model's own, if theirs is larger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.view import View
from soda_tta.data import Images
from soda_tta.data.lazy import KEPT_BYTES, LazyImages
from soda_tta.data.resizing import size_text
from soda_tta.types import Array


def at_working_size(images: Images, view: View | None) -> Images:
    """The images as every command works on them, in front of a model that takes this view of them.

    Images with more pixels than the model takes are resized once, exactly as the box would resize
    them for every query: stretched or cropped to height and width of the model. Restoring pixels
    that the model never gets would only cost time. Smaller images stay as they are, and so
    do images that were opened with a size, and all images if the model takes any size.

    Parameters
    ----------
    images : Images
        What `open_images` returns.
    view : View or None
        What of an image reaches the model, `box.input.view`.

    Examples
    --------
    >>> from soda_tta.data import open_images
    >>> frames = open_images(np.zeros((2, 72, 128, 3), np.uint8))
    >>> at_working_size(frames, View((24, 24))).card()["resize"]
    "128x72 resized to the model's 24x24 (bilinear, aspect ratio not kept)"
    >>> at_working_size(frames, None) is at_working_size(frames, View((96, 96))) is frames
    True
    """
    if view is None or images.resize.size is not None:
        return images
    height, width = images.size
    if height * width <= view.size[0] * view.size[1]:
        return images
    return ModelSizedImages(images, view)


class ModelSizedImages(Images):
    """Images resized on first use, and kept as float32 while the whole set is small enough.

    Parameters
    ----------
    images : Images
        The images in their own size.
    view : View
        What of them reaches the model.
    """

    def __init__(self, images: Images, view: View) -> None:
        self.images = images
        self.view = view
        self.size = view.size
        self.table = images.table
        self.skipped = images.skipped
        self.sample = images.sample
        shape = (len(images), 3, *self.size)
        small = 4 * np.prod(shape, dtype=np.int64) <= KEPT_BYTES
        # np.empty costs no memory until it is written to
        self._kept = np.empty(shape, np.float32) if small else None
        self._resized = np.zeros(len(images), bool)

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: Array | slice) -> Array:
        positions = np.arange(len(self))[indices]
        if self._kept is None:
            return self.view(self.images[positions])
        self._keep(np.unique(positions[~self._resized[positions]]))
        return np.asarray(self._kept[positions])

    def _keep(self, missing: Array) -> None:
        """Resize the images at these positions, a few at a time: they are large."""
        assert self._kept is not None
        if not len(missing):
            return
        for start in range(0, len(missing), self.images.at_once):
            piece = missing[start : start + self.images.at_once]
            self._kept[piece] = self.view(self.images[piece])
            self._resized[piece] = True
        if self._resized.all() and isinstance(self.images, LazyImages):
            self.images.release()

    def decoding(self) -> dict[str, Any]:
        return self.images.decoding()

    def name(self, index: int) -> str:
        return self.images.name(index)

    def path(self, index: int) -> Path | None:
        return self.images.path(index)

    def card(self) -> dict[str, Any]:
        sizes = f"{size_text(self.images.size)} resized to the model's {size_text(self.size)}"
        return {
            **super().card(),
            "resize": f"{sizes} ({self.view})",
            "original_size": list(self.images.size),
        }

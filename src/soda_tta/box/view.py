"""What of an image reaches the model: stretched or cropped to its size, and turned upright."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from soda_tta.types import Array

QUARTER = 90  # degrees


@dataclass(frozen=True)
class View:
    """The part of an image that reaches the model, and its size there.

    An image that already has the size stays as it is.

    Parameters
    ----------
    size : (int, int)
        Height and width in pixels.
    crop : float, optional
        Share of the largest centre window with the aspect ratio of `size`: 1 for the whole window,
        0.875 for the usual view of ImageNet. Default: None, the whole image is stretched to `size`.

    Examples
    --------
    >>> wide = np.tile(np.linspace(0, 1, 8, dtype=np.float32), (1, 3, 4, 1))
    >>> View((4, 4))(wide)[0, 0, 0, 0] < View((4, 4), crop=1)(wide)[0, 0, 0, 0]
    np.True_
    """

    size: tuple[int, int]
    crop: float | None = None

    def __call__(self, images: Array) -> Array:
        """The same images (float32 NCHW) as the model sees them; without a change no copy."""
        if images.shape[2:] == self.size:
            return images
        height, width = self.size
        box = self.window((int(images.shape[2]), int(images.shape[3])))
        resized = np.empty((*images.shape[:2], height, width), np.float32)
        for index in np.ndindex(*images.shape[:2]):
            plane = Image.fromarray(images[index])
            smaller = plane.resize((width, height), Image.Resampling.BILINEAR, box)
            resized[index] = np.asarray(smaller)
        return resized

    def window(self, image: tuple[int, int]) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of what is kept of an image of this height and width.

        >>> View((10, 10), crop=1).window((20, 30))
        (5.0, 0.0, 25.0, 20.0)
        >>> View((10, 10)).window((20, 30))
        (0.0, 0.0, 30.0, 20.0)
        """
        height, width = image
        if self.crop is None:
            return 0.0, 0.0, float(width), float(height)
        scale = min(height / self.size[0], width / self.size[1]) * self.crop
        kept_height, kept_width = self.size[0] * scale, self.size[1] * scale
        left, top = (width - kept_width) / 2, (height - kept_height) / 2
        return left, top, left + kept_width, top + kept_height

    def __str__(self) -> str:
        if self.crop is None:
            return "bilinear, aspect ratio not kept"
        share = "" if self.crop == 1 else f" of {self.crop:g} of the shorter side"
        return f"bilinear, centre crop{share}"


def turned(images: Array, degrees: int, mirror: bool = False) -> Array:
    """Turn a batch clockwise, then mirror it left to right; a view, not a copy.

    Parameters
    ----------
    images : array of shape (n, channels, height, width)
    degrees : {0, 90, 180, 270}
    mirror : bool, default False

    Examples
    --------
    >>> turned(np.array([[[[1, 2], [3, 4]]]]), 90)[0, 0]
    array([[3, 1],
           [4, 2]])
    """
    upright = np.rot90(images, -(degrees // QUARTER), axes=(2, 3)) if degrees else images
    return upright[..., ::-1] if mirror else upright

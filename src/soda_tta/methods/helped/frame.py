"""BETA-26's prompt: a border around the shrunken image, the same for all images, that is learned.

A deployed model takes pixels. So, unlike in the published code, the border stays within the pixel
range, and what is sent is rounded to 8 bits; the helper sees the same rounded image.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

LEVELS = 255
SIDE_TO_PAD = 14  # 16 of 224 pixels, as published; 2 of 32


def usual_pad(size: tuple[int, int]) -> int:
    """The width of the border for images of this height and width.

    >>> usual_pad((224, 224)), usual_pad((32, 32))
    (16, 2)
    """
    return max(1, round(min(size) / SIDE_TO_PAD))


class Frame:
    """Shrinks images and puts the border around them.

    Parameters
    ----------
    size : height and width of the images, in pixels.
    pad : width of the border, in pixels.
    random : draws the first border: deviation 0.5 around 0.5, in pixels normalised by 0.5 and 0.5.
    """

    def __init__(self, size: tuple[int, int], pad: int, random: np.random.Generator) -> None:
        height, width = size
        self.pad = pad
        self.inner = (height - 2 * pad, width - 2 * pad)
        drawn = random.normal(0.5, 0.5, (1, 3, height, width)).astype(np.float32)
        self.border = torch.from_numpy(drawn).clamp(-1, 1).requires_grad_(True)
        ring = torch.ones(1, 1, height, width)
        ring[:, :, pad : height - pad, pad : width - pad] = 0
        self.ring = ring

    def __call__(self, images: Tensor) -> Tensor:
        """The framed images, rounded to 8 bits; the gradient passes the rounding unchanged."""
        inner = functional.interpolate(images, self.inner, mode="bilinear", antialias=True)
        framed = functional.pad(inner.clamp(0, 1), (self.pad,) * 4)
        framed = framed + self.ring * (0.5 + 0.5 * self.border)
        rounded = (framed.detach() * LEVELS).round() / LEVELS
        return framed + (rounded.clamp(0, 1) - framed).detach()

    def keep_in_range(self) -> None:
        """Bring the border back into the pixel range."""
        with torch.no_grad():
            self.border.clamp_(-1, 1)

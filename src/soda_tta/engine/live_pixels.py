"""Images that a live stream keeps have 8 bits per value, a quarter of the memory of floats."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array


def as_bytes(images: Array) -> Array:
    """Images in [0, 1], rounded to 8 bits. Those that came as 8 bits lose nothing.

    >>> levels = np.arange(256, dtype=np.uint8)
    >>> bool((as_bytes(as_floats(levels)) == levels).all())
    True
    """
    return np.rint(np.clip(images, 0, 1) * np.float32(255)).astype(np.uint8)


def as_floats(images: Array) -> Array:
    """Images of 8 bits as float32 in [0, 1], with the bits of `open_images`."""
    return images.astype(np.float32) / np.float32(255)

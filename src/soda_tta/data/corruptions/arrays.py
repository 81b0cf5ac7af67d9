"""The one format inside this package: float32 (image, channel, row, column) in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Planes = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.integer[Any]]
AnyArray = npt.NDArray[Any]
Generators = Sequence[np.random.Generator]  # one per image, so that draws are independent

# The published generators truncate instead of rounding. The slack keeps 28.99999, which is a 29
# that went through float32, from becoming a 28.
_SLACK = 1e-3


def to_planes(images: Bytes) -> Planes:
    """8-bit channel-last images as planes."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32) / np.float32(255)


def to_bytes(planes: Planes) -> Bytes:
    """Planes as 8-bit channel-last images, clipped to the pixel range."""
    levels = np.clip(planes, 0, 1) * np.float32(255) + np.float32(_SLACK)
    return np.ascontiguousarray(levels.astype(np.uint8).transpose(0, 2, 3, 1))

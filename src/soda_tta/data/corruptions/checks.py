"""Checks of the arguments that fail early and name the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from soda_tta.data.corruptions.arrays import Bytes
from soda_tta.errors import CorruptionError

SMALLEST_SIDE = 16  # pixels; below it the kernels are wider than the image


def check_choice(what: str, value: Any, choices: Sequence[Any]) -> None:
    """Fail unless `value` is one of `choices`."""
    # True equals 1 and 2.0 equals 2, but neither is a severity, so the type is checked, too
    right_type = isinstance(value, (type(choices[0]), np.integer)) and not isinstance(value, bool)
    if not right_type or value not in choices:
        raise CorruptionError(
            f"{what} {value!r} does not exist; choose one of {', '.join(map(str, choices))}."
        )


def check_seed(what: str, value: Any) -> None:
    """Fail unless `value` is a whole number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise CorruptionError(f"{what} is {value!r}; pass a whole number of 0 or more.")


def check_images(images: Any) -> Bytes:
    """The images as uint8 (N, H, W, 3); fails unless they are in one of the two formats."""
    if not isinstance(images, np.ndarray):
        raise CorruptionError(f"images are a {type(images).__name__}; pass np.asarray(images).")
    if images.dtype == np.uint8:
        _check_shape(
            images, channel=3, layout="(N, H, W, 3)", remedy="images.transpose(0, 2, 3, 1)"
        )
        return images
    if images.dtype.kind != "f":
        raise CorruptionError(
            f"images are {images.dtype}; pass uint8 in 0..255 or floating point in [0, 1]."
        )
    _check_shape(images, channel=1, layout="(N, 3, H, W)", remedy="images.transpose(0, 3, 1, 2)")
    if images.size and not (images.min() >= 0 and images.max() <= 1):
        raise CorruptionError(
            f"images range from {images.min():.4g} to {images.max():.4g}; "
            "scale them to [0, 1] (or pass 0..255 as uint8), and undo any normalisation."
        )
    return np.rint(images.transpose(0, 2, 3, 1).astype(np.float32) * 255).astype(np.uint8)


def _check_shape(images: np.ndarray[Any, Any], *, channel: int, layout: str, remedy: str) -> None:
    """Fail with the remedy for a wrong shape."""
    shape = images.shape
    described = f"{images.dtype} images have shape {shape}, not {layout}"
    if images.ndim == 3:
        raise CorruptionError(f"{described}; add the batch axis with images[None].")
    if images.ndim != 4:
        raise CorruptionError(f"{described}; stack RGB images of one size into one array.")
    if shape[channel] != 3:
        if shape[4 - channel] == 3:
            raise CorruptionError(f"{described}; pass {remedy}.")
        raise CorruptionError(f"{described}; convert them to RGB.")
    if min(side for axis, side in enumerate(shape) if axis not in (0, channel)) < SMALLEST_SIDE:
        raise CorruptionError(
            f"{described} with sides of {SMALLEST_SIDE} pixels or more; enlarge them first."
        )

"""The 19 common corruptions at five severities, as CIFAR-10-C and ImageNet-C define them.

>>> import numpy as np
>>> from soda_tta.data.corruptions import corrupt
>>> grey = np.full((2, 32, 32, 3), 128, dtype=np.uint8)
>>> int(corrupt(grey, "brightness", severity=5).max())  # 128 / 255 + 0.3 in [0, 1]
204
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from soda_tta.data.corruption_names import CORRUPTIONS, SEVERITIES
from soda_tta.data.corruptions import blur, digital, elastic, noise, spatter, tone, weather
from soda_tta.data.corruptions.arrays import (
    AnyArray,
    Bytes,
    Generators,
    Planes,
    to_bytes,
    to_planes,
)
from soda_tta.data.corruptions.checks import check_choice, check_images, check_seed
from soda_tta.data.corruptions.constants import CONSTANT_SETS, Constant, constants_for
from soda_tta.data.corruptions.ice import panes_for
from soda_tta.errors import CorruptionError

__all__ = ["CORRUPTIONS", "SEVERITIES", "CorruptionError", "corrupt"]

Corruption = Callable[[Planes, Constant, Generators], Planes]

_REGISTRY: Final[dict[str, Callable[..., Planes]]] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "speckle_noise": noise.speckle_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "gaussian_blur": blur.gaussian_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": tone.brightness,
    "contrast": tone.contrast,
    "elastic_transform": elastic.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "spatter": spatter.spatter,
    "saturate": tone.saturate,
}

_PIXELS_AT_ONCE: Final = 1 << 18  # 256 images of 32 pixels: the data stay in the CPU cache


def corrupt(
    images: AnyArray,
    name: str,
    severity: int = 5,
    seed: int = 0,
    constants: str | None = None,
    frost: Path | str | None = None,
    start: int = 0,
) -> AnyArray:
    """Apply one corruption to a batch of images.

    Image `i` draws its randomness from (seed, name, severity, start + i) only, so neither the batch
    size nor the number of workers matters.

    Parameters
    ----------
    images : ndarray
        uint8 (N, H, W, 3), or floats in [0, 1] (N, 3, H, W), which are rounded to 8 bits first.
    name : str
        One of `CORRUPTIONS`.
    severity : int, default 5
        From 1 to 5.
    seed : int, default 0
        0 or more.
    constants : {"cifar", "imagenet"}, optional
        Strength of the corruption. Default: "cifar" for images of at most 64 pixels per side,
        else "imagenet".
    frost : path, optional
        Folder of photographs for "frost". Default: None, frost is drawn.
    start : int, default 0
        Position of the first image in its data set.

    Returns
    -------
    ndarray
        Same shape, dtype and layout as `images`; floats are multiples of 1/255, because the
        published images have 8 bits.

    Examples
    --------
    >>> corrupt(np.zeros((4, 3, 32, 32), np.float32), "fog", severity=1).shape
    (4, 3, 32, 32)
    """
    pixels = check_images(images)
    check_choice("corruption", name, CORRUPTIONS)
    check_choice("severity", severity, SEVERITIES)
    if constants is not None:
        check_choice("constant set", constants, tuple(CONSTANT_SETS))
    check_seed("seed", seed)
    check_seed("start", start)

    height, width = pixels.shape[1:3]
    constant = CONSTANT_SETS[constants or constants_for(height, width)][name][severity - 1]
    apply: Corruption = _REGISTRY[name]
    if name == "frost":
        folder = None if frost is None else Path(frost)
        apply = partial(weather.frost, panes=panes_for(folder, int(constant[2]), height, width))

    corrupted = np.empty(pixels.shape, dtype=np.uint8)
    batch = max(1, _PIXELS_AT_ONCE // (height * width))
    for first in range(0, len(pixels), batch):
        part = slice(first, min(first + batch, len(pixels)))
        generators = [
            np.random.default_rng((seed, CORRUPTIONS.index(name), severity, start + position))
            for position in range(part.start, part.stop)
        ]
        corrupted[part] = to_bytes(apply(to_planes(pixels[part]), constant, generators))
    return _in_format_of(images, corrupted)


def _in_format_of(images: AnyArray, corrupted: Bytes) -> AnyArray:
    """The result in the dtype and layout of the input."""
    if images.dtype == np.uint8:
        return corrupted
    planes: AnyArray = corrupted.transpose(0, 3, 1, 2) / images.dtype.type(255)
    return planes.astype(images.dtype)

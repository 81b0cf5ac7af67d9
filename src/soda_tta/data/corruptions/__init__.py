"""The 19 common corruptions at five severities, as CIFAR-10-C and ImageNet-C define them.

>>> import numpy as np
>>> from soda_tta.data.corruptions import corrupt
>>> grey = np.full((2, 32, 32, 3), 128, dtype=np.uint8)
>>> int(corrupt(grey, "brightness", severity=5).max())  # 128 / 255 + 0.3 on the scale of [0, 1]
204
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

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

# The position of a name enters its random draws: append to this table, never reorder it.
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

CORRUPTIONS: Final = tuple(_REGISTRY)
SEVERITIES: Final = (1, 2, 3, 4, 5)

_PIXELS_AT_ONCE: Final = (
    1 << 18
)  # 256 images of 32 pixels: what a worker touches stays in its cache


def corrupt(
    images: AnyArray,
    name: str,
    severity: int = 5,
    seed: int = 0,
    constants: str | None = None,
    frost: Path | str | None = None,
    start: int = 0,
) -> AnyArray:
    """Returns the images as a camera in trouble would have taken them: same shape, dtype and layout.

    `images` are 8-bit and channel-last (N, H, W, 3), or floating point in [0, 1] and channel-first
    (N, 3, H, W). Results are 8-bit values in both cases, as published: a floating-point image is rounded to
    8 bits first and comes back as multiples of 1/255.

    `constants` is ``"cifar"`` or ``"imagenet"``; by default ``"cifar"`` for images of at most 64 pixels.
    `frost` is a folder of photographs of frost; by default frost is drawn.
    `start` is the position of the first image in its data set. Image `i` draws its randomness from
    (seed, name, severity, start + i) alone, so neither the batch size nor the number of workers matters.
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
    return _as_given(corrupted, images)


def _as_given(corrupted: Bytes, images: AnyArray) -> AnyArray:
    if images.dtype == np.uint8:
        return corrupted
    planes: AnyArray = corrupted.transpose(0, 3, 1, 2) / images.dtype.type(255)
    return planes.astype(images.dtype)

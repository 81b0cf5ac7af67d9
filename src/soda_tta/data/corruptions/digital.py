"""Digital: effects of storing and resizing, by Pillow's codec and box filter as published."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from soda_tta.data.corruptions.arrays import Bytes, Generators, Planes, to_bytes, to_planes
from soda_tta.data.corruptions.constants import Constant


def jpeg_compression(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Stores the image as JPEG of low quality and reads it back."""
    quality = int(constant[0])
    return to_planes(np.stack([_through_jpeg(image, quality) for image in to_bytes(planes)]))


def _through_jpeg(image: Bytes, quality: int) -> Bytes:
    """Encode and decode one image."""
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def pixelate(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Shrinks the image and enlarges it again, both by averaging boxes."""
    (share,) = constant
    height, width = planes.shape[-2:]
    small = (max(int(width * share), 1), max(int(height * share), 1))
    pixelated = np.empty((len(planes), height, width, 3), dtype=np.uint8)
    for index, image in enumerate(to_bytes(planes)):
        shrunk = Image.fromarray(image).resize(small, Image.Resampling.BOX)
        pixelated[index] = np.asarray(shrunk.resize((width, height), Image.Resampling.BOX))
    return to_planes(pixelated)

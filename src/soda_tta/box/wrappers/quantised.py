"""What a transport does to an image on its way to the model."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import check_images
from soda_tta.errors import BoxError
from soda_tta.types import Array


class Quantised(Wrapper):
    """Round pixels as PNG or uint8 tensors do, and optionally compress them as JPEG.

    Parameters
    ----------
    box : Box
    bits : int, default 8
        Bits per channel, 1 to 16.
    jpeg : int, optional
        JPEG quality, 1 to 100; needs 8 bits. Default: no JPEG.

    Examples
    --------
    >>> from soda_tta.box.backends.python import CallableBox
    >>> box = Quantised(CallableBox(lambda images: np.full((len(images), 2), 0.5)))
    >>> box.as_received(np.full((1, 3, 4, 4), 0.5, np.float32)).max()
    np.float32(0.5019608)
    """

    def __init__(self, box: Box, *, bits: int = 8, jpeg: int | None = None) -> None:
        super().__init__(box)
        if not 1 <= bits <= 16:
            raise BoxError(f"{bits} is not a valid number of bits per channel; choose 1 to 16.")
        if jpeg is not None and not 1 <= jpeg <= 100:
            raise BoxError(f"{jpeg} is not a valid JPEG quality; choose 1 to 100.")
        if jpeg is not None and bits != 8:
            raise BoxError(f"JPEG has 8 bits per channel, not {bits}; leave out bits or jpeg.")
        self.bits = bits
        self.jpeg = jpeg

    def __call__(self, images: Array) -> Array:
        return self.box(self.transported(check_images(images)))

    def as_received(self, images: Array) -> Array:
        return self.box.as_received(self.transported(images))

    def transported(self, images: Array) -> Array:
        """The images at the other end of this transport."""
        levels = np.float32(2**self.bits - 1)
        rounded = np.rint(images * levels)
        if self.jpeg is not None and len(images):
            return np.stack([through_jpeg(image.astype(np.uint8), self.jpeg) for image in rounded])
        return (rounded / levels).astype(np.float32)

    def differentiable(self, images: Any) -> Any:
        raise BoxError(f"{self!r} rounds, and rounding has no gradient; pass the module itself.")

    @property
    def quantum(self) -> float:
        return max(float(1 / (2**self.bits - 1)), self.box.quantum or 0.0)

    def fingerprint(self) -> str:
        jpeg = "" if self.jpeg is None else f" and JPEG {self.jpeg}"
        return f"{self.box.fingerprint()} through {self.bits} bits{jpeg}"

    def __repr__(self) -> str:
        return f"Quantised({self.box!r}, bits={self.bits}, jpeg={self.jpeg})"


def through_jpeg(image: Array, quality: int) -> Array:
    """One CHW byte image, compressed and read back as float32 in [0, 1]."""
    buffer = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0)).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer), np.float32).transpose(2, 0, 1) / 255

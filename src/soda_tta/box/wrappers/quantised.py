"""What a transport does to an image on its way to the model."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.facts import check_images
from soda_tta.errors import BoxError
from soda_tta.types import Array


class Quantised(Wrapper):
    """Rounds pixels to `bits` a channel, as PNG or uint8 tensors do; with `jpeg`, compresses at that quality too.

    >>> from soda_tta.box.backends.python import CallableBox
    >>> seen = []
    >>> box = Quantised(CallableBox(lambda images: seen.append(images.max()) or np.full((len(images), 2), 0.5)))
    >>> _ = box(np.full((1, 3, 4, 4), 0.5, np.float32)); seen
    [np.float32(0.5019608)]
    """

    def __init__(self, box: Box, *, bits: int = 8, jpeg: int | None = None) -> None:
        super().__init__(box)
        if not 1 <= bits <= 16 or (jpeg is not None and not (1 <= jpeg <= 100 and bits == 8)):
            raise BoxError(
                "choose 1 to 16 bits a channel; JPEG has a quality of 1 to 100 and always 8 bits."
            )
        self.bits, self.jpeg = bits, jpeg

    def __call__(self, images: Array) -> Array:
        return self.box(self.arriving(check_images(images)))

    def seen(self, images: Array) -> Array:
        return self.box.seen(self.arriving(images))

    def arriving(self, images: Array) -> Array:
        """The images at the other end."""
        levels = np.float32(2**self.bits - 1)
        rounded = np.rint(images * levels)
        if self.jpeg is not None and len(images):
            return np.stack([through_jpeg(image.astype(np.uint8), self.jpeg) for image in rounded])
        return (rounded / levels).astype(np.float32)

    def differentiable(self, images: Any) -> Any:
        raise BoxError(f"{self!r} rounds, and rounding has no gradient; give the module itself.")

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

"""The images inside of a tensor that a client prepared for the model, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import Input
from soda_tta.box.view import turned
from soda_tta.protocols.tensors import DATATYPE_OF
from soda_tta.types import Array

OVERSHOOT = 0.1  # of pixels: bicubic resizing leaves [0, 1] by a few percent
FULL_TURN = 360
GREY = 1  # channels


@dataclass(frozen=True)
class Pixels:
    """What the tensors of a model mean as images.

    Parameters
    ----------
    name : str
        The input of the model.
    input : Input
        The images that the model expects.

    Examples
    --------
    >>> pixels = Pixels("images", Input(mean=0.5, std=0.25, layout="NHWC"))
    >>> tensor = np.full((1, 8, 8, 3), 2, np.float32)
    >>> images = pixels.images(tensor)
    >>> images.shape, float(images.max())
    ((1, 3, 8, 8), 1.0)
    >>> bool((pixels.tensor(images) == tensor).all())
    True
    """

    name: str
    input: Input

    @property
    def datatype(self) -> str:
        """The datatype of the tensors, as the protocol names it."""
        return DATATYPE_OF[self.input.dtype]

    def images(self, tensor: Array) -> Array | None:
        """The images as float32 NCHW RGB in [0, 1]; None if these cannot be such images."""
        if tensor.ndim != 4 or not tensor.size or tensor.dtype.name != self.input.dtype:
            return None
        planes = tensor if self.input.layout == "NCHW" else tensor.transpose(0, 3, 1, 2)
        depth = GREY if self.input.channels == "L" else 3
        if planes.shape[1] != depth or self.input.size not in (None, planes.shape[2:]):
            return None
        factor, offset = self._scale
        values = planes.astype(np.float32)
        if self._is_scaled:
            values += offset[:, :depth]
            values /= factor[:, :depth]
        low, high = values.min(), values.max()
        if not (low >= -OVERSHOOT and high <= 1 + OVERSHOOT):  # also refuses NaN
            return None
        if low < 0 or high > 1:
            values.clip(0, 1, out=values)
        return self._upright(values)

    def tensor(self, images: Array) -> Array:
        """The tensor of images, as the client would have prepared it."""
        return self._same_size.prepare(images)

    def _upright(self, values: Array) -> Array:
        """RGB, and without the turn that the model expects."""
        if self.input.channels == "L":
            values = np.repeat(values, 3, axis=1)
        elif self.input.channels == "BGR":
            values = values[:, ::-1]
        if self.input.mirror:
            values = values[..., ::-1]
        return np.ascontiguousarray(turned(values, (FULL_TURN - self.input.turn) % FULL_TURN))

    @cached_property
    def _same_size(self) -> Input:
        return replace(self.input, size=None, crop=None)

    @cached_property
    def _scale(self) -> tuple[Array, Array]:
        factor, offset = self.input.factor_and_offset
        shape = (1, 3, 1, 1)
        return (
            factor.astype(np.float32).reshape(shape),
            offset.astype(np.float32).reshape(shape),
        )

    @cached_property
    def _is_scaled(self) -> bool:
        factor, offset = self._scale
        return bool(np.any(factor != 1) or np.any(offset != 0))


def innermost(box: Box) -> Box:
    """The box inside of all wrappers."""
    while isinstance(box, Wrapper):
        box = box.box
    return box

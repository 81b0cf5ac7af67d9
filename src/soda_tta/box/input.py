"""The images a model expects, and how ours are turned into those."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from soda_tta.box.facts import InputFacts
from soda_tta.box.quantisation import BYTES, leave_range, round_to_bytes, to_bytes
from soda_tta.box.view import QUARTER, View, turned
from soda_tta.errors import BoxError, ImageError
from soda_tta.foreign_text import quoted
from soda_tta.types import Array

LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R 601, the weights of Pillow's "L"
ONE_AS_BITS = 0x3F800000  # 1 as float32
MOST_VALUES = 2**30  # in one request: 4 GB of float32

Shape = Sequence[int | str | None]  # as a model declares it; a name, None or -1 is any extent


@dataclass(frozen=True, kw_only=True)
class Input(InputFacts):
    """The images a deployed model expects.

    The images of this package are float32 NCHW RGB in [0, 1]. `prepare` resizes, turns, reorders
    and normalises them: `(pixel * pixel_range - mean) / std`, per channel, in the model's channel
    order.

    Parameters
    ----------
    size : int or (int, int), optional
        Height and width in pixels. Default: any size.
    crop : float, optional
        Share of the largest centre window that is resized to `size`, such as 0.875. Default: the
        whole image is stretched to `size`. Images that have the size stay as they are.
    turn : {0, 90, 180, 270}, default 0
        Degrees by which images are turned clockwise.
    mirror : bool, default False
        Images are mirrored left to right, after the turn.
    layout : {"NCHW", "NHWC"}, default "NCHW"
        Order of the axes.
    channels : {"RGB", "BGR", "L"}, default "RGB"
        Order of the channels; "L" is one grey channel.
    pixel_range : float, optional
        Largest pixel value before normalisation. Default: 255 if `dtype` is "uint8" or "int8",
        otherwise 1.
    mean, std : float or three floats, default 0 and 1
        Normalisation per channel, in units of `pixel_range`.
    dtype : {"float32", "float16", "uint8", "int8"}, default "float32"
        Element type of the tensor.
    quantisation : (float, int), optional
        Scale and zero point of a quantised model. Its bytes are the normalised pixels, divided by
        the scale, plus the zero point. Default, and if nothing is normalised: bytes are the pixels
        in 0..255 (minus 128 for "int8").

    Examples
    --------
    >>> white = np.ones((1, 3, 2, 2), np.float32)
    >>> Input(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)).prepare(white).max()
    np.float32(2.0)
    """

    @property
    def quantum(self) -> float | None:
        """The smallest pixel step that reaches the model; None if pixels are not rounded."""
        factor, _ = self.factor_and_offset
        if self.dtype in BYTES:
            return float(1 / factor.max())
        if self.quantisation is not None:  # floats, which the model rounds itself
            return float(self.quantisation[0] / factor.max())
        return None

    @property
    def view(self) -> View | None:
        """What of an image reaches the model, before it is turned; None: all of it."""
        if self.size is None:
            return None
        on_its_side = self.turn % (2 * QUARTER) != 0
        return View(self.size[::-1] if on_its_side else self.size, self.crop)

    def prepare(self, images: Array) -> Array:
        """Convert float32 NCHW RGB images in [0, 1] to what the model expects.

        The result never shares memory with `images`, because a model may write into its input.
        """
        prepared = images if self.view is None else self.view(images)
        prepared = turned(prepared, self.turn, self.mirror)
        if self.channels == "L":
            prepared = np.tensordot(prepared, LUMA, axes=(1, 0))[:, None]
        elif self.channels == "BGR":
            prepared = prepared[:, ::-1]
        prepared = self._normalise(prepared)
        if self.dtype in BYTES:
            clip = leave_range(*self.factor_and_offset, self.dtype)
            prepared = round_to_bytes(prepared, self.dtype, clip=clip)
        if self.layout == "NHWC":
            prepared = channels_last(prepared)
        prepared = np.ascontiguousarray(prepared, dtype=self.dtype)
        return prepared.copy() if np.may_share_memory(prepared, images) else prepared

    @cached_property
    def factor_and_offset(self) -> tuple[Array, Array]:
        """Per channel; a value of the tensor is `pixel * factor - offset`."""
        factor = np.array(self.pixel_range, np.float64) / np.array(self.std)
        offset = np.array(self.mean) / np.array(self.std)
        if self.dtype in BYTES:
            return to_bytes(factor, offset, self.dtype, self.quantisation)
        return factor, offset

    def _normalise(self, images: Array) -> Array:
        factor, offset = self.factor_and_offset
        if np.all(factor == 1) and np.all(offset == 0) and self.dtype not in BYTES:
            return images
        depth = images.shape[1]
        per_channel = (1, -1, 1, 1)
        scaled: Array = images * factor[:depth].astype(np.float32).reshape(per_channel)
        if np.any(offset):
            scaled -= offset[:depth].astype(np.float32).reshape(per_channel)
        return scaled


def channels_last(images: Array) -> Array:
    """NCHW to NHWC, channel by channel: several times faster than a copy of transposed axes.

    >>> channels_last(np.zeros((2, 3, 4, 5))).shape
    (2, 4, 5, 3)
    """
    count, depth, height, width = images.shape
    moved = np.empty((count, height, width, depth), images.dtype)
    for channel in range(depth):
        moved[..., channel] = images[:, channel]
    return moved


def input_from_shape(shape: Shape, dtype: str, /, **stated: Any) -> Input:
    """Read layout, channels and size from a model's declared input; stated facts have precedence.

    Parameters
    ----------
    shape : sequence
        Four extents; a string, None or -1 stands for any extent.
    dtype : str
        Declared element type.
    **stated
        Facts that the user or the model's metadata states, see `Input`.

    Examples
    --------
    >>> input_from_shape(["n", 224, 224, 3], "float32").layout
    'NHWC'
    """
    if len(shape) != 4:
        raise BoxError(
            f"the model's input has shape {list(shape)}; an image model takes four dimensions."
        )
    stated = {name: value for name, value in stated.items() if value is not None}
    extents = [extent if isinstance(extent, int) and extent > 0 else None for extent in shape]
    check_extents(extents)
    layout = stated.pop("layout", None) or _likely_layout(extents)
    if layout == "NCHW":
        depth, height, width = extents[1:]
    else:
        height, width, depth = extents[1:]
    if depth not in (None, 1, 3):
        raise BoxError(
            f"the model takes {depth} channels ({layout}); this package sends 3 (RGB) or 1 (grey)."
        )
    if depth == 1:
        stated.setdefault("channels", "L")
    if height is not None and width is not None:
        stated.setdefault("size", (height, width))
    if stated.setdefault("dtype", dtype) != dtype:
        raise BoxError(f"the model takes {dtype}, not {stated['dtype']}.")
    return Input(layout=layout, **stated)


def check_extents(extents: Sequence[int | None]) -> None:
    """Refuse a declared input that does not fit into memory."""
    values = math.prod(extent or 1 for extent in extents)
    if values > MOST_VALUES:
        shape = quoted(" x ".join(str(extent or "?") for extent in extents))
        raise BoxError(
            f"the model declares an input of {shape}, more than 4 GB per request; "
            "declare -1 for an extent that is free, or a smaller one."
        )


def _likely_layout(extents: Sequence[int | None]) -> str:
    channels_last = extents[3] in (1, 3) and extents[1] not in (1, 3)
    return "NHWC" if channels_last else "NCHW"


def declared_by_shape(shape: Shape, dtype: str) -> dict[str, Any]:
    """The facts that a declared input determines on its own.

    Parameters
    ----------
    shape : sequence
        Four extents; a string, None or -1 stands for any extent.
    dtype : str
        Declared element type.

    Examples
    --------
    >>> declared_by_shape(["n", 224, 224, 3], "uint8")
    {'dtype': 'uint8', 'layout': 'NHWC', 'grey': False}
    >>> declared_by_shape([None, None, None, None], "float32")
    {'dtype': 'float32'}
    """
    depths = {"NHWC": shape[3], "NCHW": shape[1]}
    likely = {layout: depth for layout, depth in depths.items() if depth in (1, 3)}
    if not likely:
        return {"dtype": dtype}
    layout = list(likely)[-1]  # NCHW if both are possible, as `input_from_shape` reads it
    return {"dtype": dtype, "layout": layout, "grey": likely[layout] == 1}


def check_images(images: Array) -> Array:
    """Raise an `ImageError` unless these are float32 NCHW RGB images in [0, 1].

    Parameters
    ----------
    images : array
        Returned unchanged, without a copy.

    Examples
    --------
    >>> check_images(np.zeros((2, 3, 8, 8), np.float32)).shape
    (2, 3, 8, 8)
    """
    images = np.asarray(images)
    if images.ndim != 4 or images.shape[1] != 3:
        raise ImageError(f"a box takes images of shape (n, 3, height, width); got {images.shape}.")
    if images.dtype != np.float32:
        raise ImageError(
            f"a box takes float32 images in [0, 1]; got {images.dtype}: divide bytes by 255 first."
        )
    # The bits of floats from 0 to 1 are whole numbers in the same order. All others, NaN and those
    # with a sign too, are larger. So one pass is enough, unless there is a -0.
    if images.size and images.view(np.uint32).max() > ONE_AS_BITS:
        low, high = float(images.min()), float(images.max())
        if not (low >= 0 and high <= 1):  # also catches NaN
            raise ImageError(f"a box takes pixels in [0, 1]; got {low:.4g} .. {high:.4g}.")
    return images

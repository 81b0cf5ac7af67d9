"""Models that take bytes: which byte stands for which pixel."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array

# The element types, and what is subtracted from a pixel in 0..255 to give its byte.
BYTES = {"uint8": 0, "int8": 128}
WHITE = 255
NEARLY = 1.01  # levels: scale and zero point round the mean and std of the training


def to_bytes(
    factor: Array, offset: Array, dtype: str, quantisation: tuple[float, int] | None
) -> tuple[Array, Array]:
    """Factor and offset per channel that turn a pixel in [0, 1] into its byte.

    Parameters
    ----------
    factor, offset : array
        Normalisation: `pixel * factor - offset`.
    dtype : {"uint8", "int8"}
    quantisation : (float, int) or None
        Scale and zero point of the model's input: the byte of a normalised pixel x is
        `x / scale + zero point`. A byte is the pixel itself, in 0..255 or -128..127, if there is
        no quantisation, if nothing is normalised, or if the formula deviates from that by no more
        than a level: such a deviation is rounding, and it would only make bytes collide.

    Examples
    --------
    >>> to_bytes(np.array([2.0]), np.array([1.0]), "uint8", (1 / 128, 128))  # pixels in -1..1
    (array([255.]), array([0.]))
    >>> to_bytes(np.array([4.0]), np.array([2.0]), "int8", (1 / 32, 0))  # pixels in -2..2
    (array([128.]), array([64.]))
    """
    shift = BYTES[dtype]
    if quantisation is None:
        return factor, offset + shift
    pixels = (np.full_like(factor, WHITE), np.full_like(offset, shift))
    if np.all(factor == WHITE) and np.all(offset == 0):
        return pixels
    scale, zero_point = quantisation
    factor, offset = factor / scale, offset / scale - zero_point
    black_deviation = np.abs(offset - shift)
    white_deviation = np.abs((factor - offset) - (WHITE - shift))
    if max(black_deviation.max(), white_deviation.max()) <= NEARLY:
        return pixels
    return factor, offset


def leave_range(factor: Array, offset: Array, dtype: str) -> bool:
    """Whether pixels in [0, 1] may become values that do not fit into a byte.

    >>> leave_range(np.array([255.0]), np.array([0.0]), "uint8")
    False
    """
    limits = np.iinfo(dtype)
    return bool(np.any(-offset < limits.min) or np.any(factor - offset > limits.max))


def round_to_bytes(values: Array, dtype: str, clip: bool = True) -> Array:
    """Bytes from values, which are changed.

    Parameters
    ----------
    values : array
    dtype : {"uint8", "int8"}
    clip : bool, default True
        Values outside the range of the type become its ends. Otherwise there must be none.

    Examples
    --------
    >>> round_to_bytes(np.array([-200.0, 0.6, 300.0], np.float32), "int8")
    array([-128,    1,  127], dtype=int8)
    """
    np.rint(values, out=values)
    if clip:
        limits = np.iinfo(dtype)
        values.clip(limits.min, limits.max, out=values)
    return values.astype(dtype)

"""Linear maps that several corruptions share: smoothing, zooming, smearing along a line."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import sparse

from soda_tta.data.corruptions.arrays import Indices, Planes

_NEGLIGIBLE = 1e-6  # a smaller weight cannot change an 8-bit value


def gaussian_smooth(
    planes: Planes, sigma: float, *, truncate: float = 4.0, border: str = "nearest"
) -> Planes:
    """Smooth the last two axes by a Gaussian.

    It is a matrix product along each axis: at these sizes this is faster than a convolution, its
    cost does not grow with sigma, and the border rule is free. It runs in float64, because the
    order of summation depends on the number of threads, and an 8-bit result must not.
    """
    height, width = planes.shape[-2:]
    rows = _gaussian_matrix(height, sigma, truncate, border)
    columns = _gaussian_matrix(width, sigma, truncate, border)
    smooth: npt.NDArray[np.float64] = np.matmul(
        np.matmul(rows, planes.astype(np.float64)), columns.T
    )
    return smooth.astype(np.float32)


@lru_cache(maxsize=64)
def _gaussian_matrix(
    size: int, sigma: float, truncate: float, border: str
) -> npt.NDArray[np.float64]:
    """The matrix that smooths a line of `size` pixels."""
    radius = int(truncate * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (offsets / max(sigma, 1e-9)) ** 2)
    weights /= weights.sum()
    matrix = np.zeros((size, size))
    for offset, weight in zip(offsets, weights, strict=True):
        np.add.at(matrix, (np.arange(size), fold(np.arange(size) + offset, size, border)), weight)
    return matrix


def fold(positions: Indices, size: int, border: str) -> Indices:
    """Bring positions outside 0 .. size-1 back inside.

    ``nearest`` repeats the edge (a a|a b c), ``reflect`` mirrors about the edge of the last pixel
    (b a|a b c), ``mirror`` about its centre (c b|a b c).
    """
    if border == "nearest":
        return np.clip(positions, 0, size - 1)
    if border == "reflect":
        last = 2 * size - 1
        folded: Indices = np.mod(positions, last + 1)
    else:
        last = 2 * (size - 1)
        folded = np.mod(positions, last)
    return np.minimum(folded, last - folded)


@lru_cache(maxsize=256)
def zoom_weights(size: int, zoom: float) -> sparse.csr_array:
    """The matrix that enlarges the centre of a line of `size` pixels to the whole line."""
    kept = int(np.ceil(size / zoom))
    enlarged = round(kept * zoom)
    first = (size - kept) // 2
    trim = (enlarged - size) // 2
    # Corner pixels stay on corner pixels, so the step is (kept - 1) over (enlarged - 1).
    positions = (np.arange(size) + trim) * ((kept - 1) / max(enlarged - 1, 1))
    lower = np.minimum(positions.astype(np.int64), kept - 1)
    upper = np.minimum(lower + 1, kept - 1)
    fraction = positions - lower
    rows = np.concatenate([np.arange(size)] * 2)
    columns = first + np.concatenate([lower, upper])
    return sparse.csr_array(
        (np.concatenate([1 - fraction, fraction]), (rows, columns)), shape=(size, size)
    )


def line_taps(radius: float, sigma: float, angle: float) -> list[tuple[int, int, float]]:
    """(rows, columns, weight) of a one-sided Gaussian streak from a pixel at `angle` degrees."""
    steps = np.arange(2 * int(radius) + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    weights /= weights.sum()
    radians = np.deg2rad(angle)
    # Rounded to whole pixels, halves down, as the published kernel does.
    rows = np.ceil(steps * np.sin(radians) - 0.5).astype(int)
    columns = np.ceil(steps * np.cos(radians) - 0.5).astype(int)
    return [
        (int(row), int(column), float(weight))
        for row, column, weight in zip(rows, columns, weights, strict=True)
        if weight > _NEGLIGIBLE
    ]


def smear(planes: Planes, taps: list[tuple[int, int, float]]) -> Planes:
    """Add shifted copies of one image (channel, row, column); the edge is repeated outwards."""
    height, width = planes.shape[-2:]
    up, down = _reach([row for row, _, _ in taps], height)
    left, right = _reach([column for _, column, _ in taps], width)
    padded = np.pad(planes, ((0, 0), (up, down), (left, right)), mode="edge")
    total = np.zeros_like(planes)
    part = np.empty_like(planes)
    for row, column, weight in taps:
        top = up + min(max(row, -up), down)
        start = left + min(max(column, -left), right)
        window = padded[:, top : top + height, start : start + width]
        total += np.multiply(window, np.float32(weight), out=part)
    return total


def _reach(shifts: list[int], size: int) -> tuple[int, int]:
    """How far the shifts go backwards and forwards, at most the size of the image."""
    # beyond the size of the image, only its edge is visible
    backwards = min(max(0, -min(shifts)), size)
    forwards = min(max(0, max(shifts)), size)
    return backwards, forwards

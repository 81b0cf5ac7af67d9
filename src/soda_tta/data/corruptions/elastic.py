"""Elastic transform: a tilted and locally stretched image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soda_tta.data.corruptions.arrays import Generators, Indices, Planes
from soda_tta.data.corruptions.constants import Constant
from soda_tta.data.corruptions.operators import fold, gaussian_smooth

Positions = npt.NDArray[np.float32]  # (image, row, column): where to read


def elastic_transform(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Tilts the image by a random affine map, then displaces every pixel by a smooth random field.

    It interpolates twice, as the published images do: once would leave the image sharper.
    """
    displacement, smoothing, jitter = constant
    height, width = planes.shape[-2:]
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    tilt = np.stack([_tilt(height, width, jitter, generator) for generator in generators])
    tilted = _read(
        planes,
        tilt[:, 0, 0, None, None] * rows
        + tilt[:, 0, 1, None, None] * columns
        + tilt[:, 0, 2, None, None],
        tilt[:, 1, 0, None, None] * rows
        + tilt[:, 1, 1, None, None] * columns
        + tilt[:, 1, 2, None, None],
        border="mirror",
    )
    if displacement == 0:
        return tilted
    field = np.stack(
        [2 * generator.random((2, height, width), dtype=np.float32) - 1 for generator in generators]
    )
    field = gaussian_smooth(field, smoothing, truncate=3.0, border="reflect") * np.float32(
        displacement
    )
    return _read(tilted, rows + field[:, 0], columns + field[:, 1], border="reflect")


def _tilt(
    height: int, width: int, jitter: float, generator: np.random.Generator
) -> npt.NDArray[np.float32]:
    """The affine map (2, 3) from a position in the tilted image to one in the original.

    Three corners of a square in the middle move independently by up to `jitter` pixels.
    """
    side = min(height, width) // 3
    middle = np.array([height // 2, width // 2])
    corners = middle + side * np.array([[1, 1], [-1, 1], [-1, -1]])
    moved = corners + generator.uniform(-jitter, jitter, (3, 2))
    return np.linalg.solve(np.column_stack([moved, np.ones(3)]), corners).T.astype(np.float32)


def _read(planes: Planes, rows: Positions, columns: Positions, border: str) -> Planes:
    """Read every image at fractional positions, linearly between the four nearest pixels."""
    count, channels, height, width = planes.shape
    top = np.floor(rows)
    left = np.floor(columns)
    down = (rows - top)[..., None]
    right = (columns - left)[..., None]
    row = [fold(top.astype(np.int32) + step, height, border) for step in (0, 1)]
    column = [fold(left.astype(np.int32) + step, width, border) for step in (0, 1)]
    # Channels last, so that one index fetches three neighbouring values.
    pixels = np.ascontiguousarray(planes.transpose(0, 2, 3, 1)).reshape(
        count * height * width, channels
    )
    first = (np.arange(count, dtype=np.int32) * (height * width))[:, None, None]

    def fetch(row: Indices, column: Indices) -> Planes:
        fetched: Planes = pixels[first + row * width + column]
        return fetched

    upper = fetch(row[0], column[0])
    upper += (fetch(row[0], column[1]) - upper) * right
    lower = fetch(row[1], column[0])
    lower += (fetch(row[1], column[1]) - lower) * right
    upper += (lower - upper) * down
    return np.ascontiguousarray(upper.transpose(0, 3, 1, 2))

"""Spatter: drops of water or mud on the lens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from soda_tta.data.corruptions.arrays import Bytes, Generators, Planes
from soda_tta.data.corruptions.constants import Constant
from soda_tta.data.corruptions.operators import gaussian_smooth

Levels = npt.NDArray[np.int32]  # (image, row, column), 0 .. 255

# pale turquoise and brown
_WATER: Planes = (np.array([175, 238, 238]) / 255).astype(np.float32)[:, None, None]
_MUD: Planes = (np.array([63, 42, 20]) / 255).astype(np.float32)[:, None, None]
_FAR = 20  # pixels from a rim beyond which water lies flat
_WEAK_EDGE = 50  # steepness that continues a rim
_STRONG_EDGE = 150  # steepness that starts one
_RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])  # light from the upper left
_THICK = 0.8  # cover below which mud is transparent


def spatter(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Covers parts of the image with drops: water at low severities, mud at high ones."""
    mean, deviation, sigma, threshold, strength, mud = constant
    liquid = np.empty((len(planes), *planes.shape[-2:]), dtype=np.float32)
    for index, generator in enumerate(generators):
        generator.standard_normal(dtype=np.float32, out=liquid[index])
    liquid = gaussian_smooth(np.float32(mean) + np.float32(deviation) * liquid, sigma)
    if mud:
        cover = gaussian_smooth((liquid > threshold).astype(np.float32), strength)
        cover = np.where(cover < _THICK, np.float32(0), cover)[:, None]
        return planes * (1 - cover) + _MUD * cover
    drops = np.where(liquid < threshold, 0, np.clip(liquid, 0, 1) * 255).astype(np.int32)
    glint = (drops * _shading(drops)).astype(np.float32)
    brightest = glint.max(axis=(1, 2), keepdims=True)
    glint *= np.float32(strength) / np.maximum(brightest, 1)
    return planes + glint[:, None] * _WATER


def _shading(drops: Levels) -> Levels:
    """Light on the water: a relief of the distance to the nearest rim of a drop."""
    rims = _rims(drops)
    distance = np.full(drops.shape, float(_FAR))
    for index in np.flatnonzero(rims.any(axis=(1, 2))):
        distance[index] = np.minimum(ndimage.distance_transform_edt(~rims[index]), _FAR)
    flat = _box_mean(distance).astype(np.uint8)
    equal = np.stack([_equalised(image) for image in flat])
    relief = np.clip(_correlate(equal.astype(np.int32), _RELIEF), 0, 255)
    return np.rint(_box_mean(relief.astype(np.float64))).astype(np.int32)


def _rims(drops: Levels) -> npt.NDArray[np.bool_]:
    """Edges after Canny: crests of the gradient that are connected to a steep one."""
    smooth = np.array([1, 2, 1])
    slope = np.array([-1, 0, 1])
    along_columns = _correlate(drops, np.outer(smooth, slope), border="edge")
    along_rows = _correlate(drops, np.outer(slope, smooth), border="edge")
    steepness = np.abs(along_columns) + np.abs(along_rows)
    around = np.pad(steepness, ((0, 0), (1, 1), (1, 1)))
    height, width = drops.shape[1:]

    def neighbour(row: int, column: int) -> Levels:
        return around[:, 1 + row : 1 + row + height, 1 + column : 1 + column + width]

    # A crest is the highest across the direction of its gradient, rounded to 45 degrees.
    tangent = np.tan(np.pi / 8)
    horizontal = np.abs(along_rows) < tangent * np.abs(along_columns)
    vertical = np.abs(along_columns) < tangent * np.abs(along_rows)
    falling = np.sign(along_columns) == np.sign(along_rows)
    which = [horizontal, vertical, falling]
    before = np.select(
        which, [neighbour(0, -1), neighbour(-1, 0), neighbour(-1, -1)], neighbour(-1, 1)
    )
    after = np.select(which, [neighbour(0, 1), neighbour(1, 0), neighbour(1, 1)], neighbour(1, -1))
    # Of two equal neighbours the first is the crest, otherwise neither would be.
    crest = (steepness > before) & (steepness >= after) & (steepness > _WEAK_EDGE)
    within_an_image = np.zeros((3, 3, 3), dtype=bool)
    within_an_image[1] = True
    labels, count = ndimage.label(crest, within_an_image)
    steep = np.zeros(count + 1, dtype=bool)
    steep[labels[crest & (steepness > _STRONG_EDGE)]] = True
    steep[0] = False
    return np.asarray(steep[labels])


def _correlate(images: Levels, kernel: npt.NDArray[np.int64], border: str = "reflect") -> Levels:
    """Correlate every image with a 3 x 3 kernel."""
    mode: dict[str, str] = {"mode": border}
    around = np.pad(images, ((0, 0), (1, 1), (1, 1)), **mode)  # type: ignore[call-overload]
    height, width = images.shape[1:]
    total = np.zeros_like(images)
    for (row, column), weight in np.ndenumerate(kernel):
        if weight:
            total += int(weight) * around[:, row : row + height, column : column + width]
    return total


def _box_mean(images: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of the 3 x 3 pixels around each pixel."""
    around = np.pad(images, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    rows = around[:, :-2] + around[:, 1:-1] + around[:, 2:]
    return np.asarray((rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]) / 9)


def _equalised(image: Bytes) -> Bytes:
    """Histogram equalisation: the darkest level goes to 0, the brightest to 255."""
    counts = np.bincount(image.ravel(), minlength=256)
    counts[image.min()] = 0
    total = counts.sum()
    if total == 0:
        return image
    equal: Bytes = np.rint(counts.cumsum() * (255 / total)).astype(np.uint8)[image]
    return equal

"""Weather: snow, frost and fog between the camera and the scene."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from soda_tta.data.corruptions.arrays import Bytes, Generators, Planes
from soda_tta.data.corruptions.constants import Constant
from soda_tta.data.corruptions.operators import line_taps, smear, zoom_weights

_LUMINANCE = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # ITU-R BT.601


def fog(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Adds a cloud, then dims the sum so that the brightest value stays the same."""
    amount = np.float32(constant[0])
    decay = constant[1]
    height, width = planes.shape[-2:]
    brightest = planes.max(axis=(1, 2, 3), keepdims=True)
    cloud = _clouds(max(height, width), decay, generators)[:, None, :height, :width]
    foggy: Planes = (planes + amount * cloud) * brightest / (brightest + amount)
    return foggy


def _clouds(size: int, decay: float, generators: Generators) -> Planes:
    """Plasma fractals in [0, 1] by the diamond-square method, on a torus of side 2^k.

    From one scale to the next the roughness falls by the square of `decay`.
    """
    side = 1 << (size - 1).bit_length()
    clouds = np.zeros((len(generators), side, side), dtype=np.float32)
    step, roughness = side, 1.0
    while step >= 2:
        half = step // 2
        count = side // step
        noise = np.empty((len(generators), 3, count, count), dtype=np.float32)
        for index, generator in enumerate(generators):
            generator.random(dtype=np.float32, out=noise[index])
        noise = (2 * noise - 1) * np.float32(roughness)
        corners = clouds[:, ::step, ::step]
        to_the_right = np.roll(corners, -1, axis=2)
        centres = (
            corners + to_the_right + np.roll(corners + to_the_right, -1, axis=1)
        ) / 4 + noise[:, 0]
        clouds[:, half::step, half::step] = centres
        across = corners + to_the_right + centres + np.roll(centres, 1, axis=1)
        clouds[:, ::step, half::step] = across / 4 + noise[:, 1]
        down = corners + np.roll(corners, -1, axis=1) + centres + np.roll(centres, 1, axis=2)
        clouds[:, half::step, ::step] = down / 4 + noise[:, 2]
        step, roughness = half, roughness / decay**2
    clouds -= clouds.min(axis=(1, 2), keepdims=True)
    clouds /= clouds.max(axis=(1, 2), keepdims=True)
    return clouds


def snow(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Whitens the image and adds flakes, streaked by their motion."""
    mean, deviation, zoom, threshold, radius, sigma, kept = constant
    height, width = planes.shape[-2:]
    rows = zoom_weights(height, zoom)
    columns = zoom_weights(width, zoom)
    flakes = np.empty((len(planes), 1, height, width), dtype=np.float32)
    for index, generator in enumerate(generators):
        layer = mean + deviation * generator.standard_normal((height, width), dtype=np.float32)
        layer = (columns @ (rows @ layer).T).T
        layer = np.clip(np.where(layer < threshold, 0, layer), 0, 1).astype(np.float32)
        flakes[index] = smear(layer[None], line_taps(radius, sigma, generator.uniform(-135, -45)))
    grey = np.einsum("nchw,c->nhw", planes, _LUMINANCE)[:, None]
    whitened = np.maximum(planes, grey * np.float32(1.5) + np.float32(0.5))
    scene = np.float32(kept) * planes + np.float32(1 - kept) * whitened
    snowy: Planes = scene + flakes + flakes[:, :, ::-1, ::-1]
    return snowy


def frost(planes: Planes, constant: Constant, generators: Generators, panes: list[Bytes]) -> Planes:
    """Lays a random piece of a frosted pane over the image.

    `panes` are 8-bit pictures of frost (row, column, channel), at least as large as the images.
    """
    image_weight = np.float32(constant[0])
    frost_weight = np.float32(constant[1])
    height, width = planes.shape[-2:]
    pieces = np.empty((len(planes), height, width, 3), dtype=np.uint8)
    for index, generator in enumerate(generators):
        pane = panes[generator.integers(len(panes))]
        top = generator.integers(pane.shape[0] - height + 1)
        left = generator.integers(pane.shape[1] - width + 1)
        pieces[index] = pane[top : top + height, left : left + width]
    ice: npt.NDArray[np.float32] = pieces.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    return image_weight * planes + frost_weight * ice

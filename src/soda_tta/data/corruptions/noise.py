"""Noise: added by a sensor in low light or by a bad connection."""

from __future__ import annotations

import numpy as np

from soda_tta.data.corruptions.arrays import Generators, Planes
from soda_tta.data.corruptions.constants import Constant


def gaussian_noise(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Adds independent normal noise to every value: a sensor in the dark."""
    (deviation,) = constant
    return planes + np.float32(deviation) * _normal(planes, generators)


def speckle_noise(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Adds normal noise in proportion to the value: coherent light, radar, ultrasound."""
    (deviation,) = constant
    return planes + planes * (np.float32(deviation) * _normal(planes, generators))


def shot_noise(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Counts photons: Poisson noise, where a white pixel has a mean of `photons`."""
    (photons,) = constant
    expected = planes.astype(np.float64) * photons
    counts = np.empty_like(planes)
    for index, generator in enumerate(generators):
        counts[index] = generator.poisson(expected[index])
    return counts / np.float32(photons)


def impulse_noise(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Loses a share of the values, half of them to black and half to white: salt and pepper."""
    (share,) = constant
    fate = np.empty_like(planes)
    for index, generator in enumerate(generators):
        generator.random(dtype=np.float32, out=fate[index])
    # One draw decides both: below the share a value is lost, below half of it the value is white.
    salted = np.where(fate < share / 2, np.float32(1), np.float32(0))
    return np.where(fate < share, salted, planes)


def _normal(planes: Planes, generators: Generators) -> Planes:
    """Standard normal values, those of each image from its own generator."""
    values = np.empty_like(planes)
    for index, generator in enumerate(generators):
        generator.standard_normal(dtype=np.float32, out=values[index])
    return values

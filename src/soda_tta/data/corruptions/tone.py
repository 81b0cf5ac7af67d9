"""Tone: brightness, contrast and saturation. None of them is random."""

from __future__ import annotations

import numpy as np

from soda_tta.data.corruptions.arrays import Generators, Planes
from soda_tta.data.corruptions.constants import Constant


def contrast(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Pulls every channel of an image towards its mean."""
    (factor,) = constant
    mean = planes.mean(axis=(2, 3), keepdims=True, dtype=np.float64).astype(np.float32)
    pulled: Planes = (planes - mean) * np.float32(factor) + mean
    return pulled


def brightness(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Raises the value of HSV; hue and saturation stay."""
    (shift,) = constant
    value = planes.max(axis=1, keepdims=True)
    raised = np.clip(value + np.float32(shift), 0, 1)
    # With hue and saturation fixed, channels are proportional to the value: no conversion needed.
    gain = raised / np.where(value > 0, value, 1)
    brighter: Planes = np.where(value > 0, planes * gain, raised)
    return brighter


def saturate(planes: Planes, constant: Constant, generators: Generators) -> Planes:
    """Scales and shifts the saturation of HSV; hue and value stay."""
    factor, shift = constant
    value = planes.max(axis=1, keepdims=True)
    spread = value - planes.min(axis=1, keepdims=True)
    saturation = spread / np.where(value > 0, value, 1)
    wanted = np.clip(saturation * np.float32(factor) + np.float32(shift), 0, 1)
    gain = wanted / np.where(saturation > 0, saturation, 1)
    coloured = value - (value - planes) * gain
    # Grey has no hue. By convention its hue is 0, red: grey turns reddish with more saturation.
    pale = value * (1 - wanted)
    grey = np.concatenate([value, pale, pale], axis=1)
    return np.where(saturation > 0, coloured, grey)

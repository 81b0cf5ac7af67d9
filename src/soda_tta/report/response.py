"""The tone and frequency response of an adaptor, measured from its inputs and outputs alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.data import Images
from soda_tta.types import Array

PICTURES = 32  # for the tone curve; gratings are added to the first GRATED of them
GRATED = 4
LARGEST = 128  # pixels; larger images are cropped to their centre
AMPLITUDE = 0.02  # of a grating: five 8-bit steps, small for an image and large for rounding
LEVELS = 32  # of the tone curve
FREQUENCIES = 14
SINGLE_CURVES = 10  # images whose own tone curve is measured
ALIKE = 0.06  # of the pixel range: curves that differ by more are drawn one by one


@dataclass(frozen=True)
class Response:
    """Tone and frequency response. Levels and shifts are shares of the pixel range."""

    synthetic: bool  # measured on generated pictures, not on the run's images
    pictures: int
    level: Array  # pixel values that occur
    tone: Array  # (3, levels): mean output by channel; NaN where a channel has too few pixels
    curves: list[tuple[Array, Array]]  # of single images, in grey: input levels and mean outputs
    frequency: Array  # cycles per pixel
    gain: Array  # 1: a fine pattern of this frequency passes unchanged
    shift: Array  # (3,): mean change of each channel
    contrast: float  # standard deviation of the pixels after, divided by the one before
    change: float  # root mean square change of a pixel

    @property
    def common(self) -> bool:
        """Whether all images have the same tone curve; an adaptor may treat each differently."""
        grey = np.nanmean(self.tone, axis=0)
        gaps = [after - np.interp(level, self.level, grey) for level, after in self.curves]
        return not gaps or float(np.sqrt(np.mean(np.concatenate(gaps) ** 2))) < ALIKE


def measure_response(adaptor: Adaptor, size: tuple[int, int], images: Images | None) -> Response:
    """Measure an adaptor on the run's images, or on generated pictures of `size` without them."""
    pictures = generate_pictures(size) if images is None else some_images(images)
    adapted = adaptor(pictures)
    level, tone = tone_curve(pictures, adapted)
    grey_before = _grey(pictures[:SINGLE_CURVES])
    grey_after = _grey(adapted[:SINGLE_CURVES])
    single_curves = [
        tone_curve(grey_before[i : i + 1], grey_after[i : i + 1]) for i in range(len(grey_before))
    ]
    frequency, gain = frequency_response(adaptor, pictures[:GRATED])
    deviation = float(pictures.std(axis=(2, 3)).mean())
    contrast = float(adapted.std(axis=(2, 3)).mean()) / deviation if deviation > 1e-6 else 1.0
    return Response(
        synthetic=images is None,
        pictures=len(pictures),
        level=level,
        tone=tone,
        curves=[(levels, tones[0]) for levels, tones in single_curves if len(levels)],
        frequency=frequency,
        gain=gain,
        shift=(adapted - pictures).mean(axis=(0, 2, 3)),
        contrast=contrast,
        change=float(np.sqrt(np.mean((adapted - pictures) ** 2))),
    )


def _grey(pictures: Array) -> Array:
    """The mean of the channels, three times."""
    grey: Array = pictures.mean(axis=1, keepdims=True).repeat(3, axis=1)
    return grey


def some_images(images: Images) -> Array:
    """At most PICTURES images, evenly spaced over the set."""
    chosen = np.unique(np.linspace(0, len(images) - 1, min(PICTURES, len(images))).astype(int))
    return crop_centre(images[chosen])


def crop_centre(pictures: Array) -> Array:
    """The centre of the pictures, at most LARGEST pixels high and wide."""
    height, width = pictures.shape[2:]
    top = max(0, height - LARGEST) // 2
    left = max(0, width - LARGEST) // 2
    return np.ascontiguousarray(pictures[:, :, top : top + LARGEST, left : left + LARGEST])


def generate_pictures(size: tuple[int, int]) -> Array:
    """Random clouds with the spectrum of photographs (amplitude 1/f), over the pixel range."""
    height = min(size[0], LARGEST)
    width = min(size[1], LARGEST)
    generator = np.random.default_rng(0)
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    radius[0, 0] = np.inf  # no weight on the mean
    grey = generator.standard_normal((PICTURES, 1, height, width))
    colour = generator.standard_normal((PICTURES, 3, height, width))
    clouds = np.fft.irfft2(np.fft.rfft2(grey + 0.3 * colour) / radius, s=(height, width))
    clouds /= 2.5 * clouds.std(axis=(2, 3), keepdims=True) + 1e-12
    brightness = generator.uniform(0.3, 0.7, (PICTURES, 1, 1, 1))
    return np.clip(brightness + 0.5 * clouds, 0, 1).astype(np.float32)


def tone_curve(pictures: Array, adapted: Array) -> tuple[Array, Array]:
    """Input levels, and the mean output of each by channel; inputs are gathered in LEVELS bins."""
    tones = np.full((3, LEVELS), np.nan)
    counts = np.zeros(LEVELS)
    totals = np.zeros(LEVELS)
    for channel in range(3):
        level_of = np.minimum((pictures[:, channel] * LEVELS).astype(int), LEVELS - 1).ravel()
        count = np.bincount(level_of, minlength=LEVELS)
        enough = count >= max(10, level_of.size // 2000)
        outputs = np.bincount(level_of, adapted[:, channel].ravel(), LEVELS)
        tones[channel, enough] = outputs[enough] / count[enough]
        totals += np.bincount(level_of, pictures[:, channel].ravel(), LEVELS) * enough
        counts += count * enough
    return totals[counts > 0] / counts[counts > 0], tones[:, counts > 0]


def frequency_response(adaptor: Adaptor, pictures: Array) -> tuple[Array, Array]:
    """The share of a faint grating that passes the adaptor, from coarse to fine gratings.

    The adaptor is applied to the pictures plus the grating and minus the grating, and the
    difference is projected on the grating, so that its effect on the pictures themselves cancels.
    Whole numbers of cycles keep the gratings orthogonal.
    """
    height, width = pictures.shape[2:]
    compressed = AMPLITUDE + (1 - 2 * AMPLITUDE) * pictures  # so that nothing clips
    finest = max(1, (min(height, width) - 1) // 2)
    cycles = np.unique(np.round(np.linspace(1, finest, FREQUENCIES)).astype(int))
    rows = np.arange(height)[:, None] / height + np.zeros((1, width))
    columns = np.arange(width)[None] / width + np.zeros((height, 1))
    phases = np.random.default_rng(1).uniform(0, 2 * np.pi, (len(pictures), 1, 1, 1))
    gains = [
        np.mean(
            [
                _grating_gain(adaptor, compressed, 2 * np.pi * count * direction + phases)
                for direction in (rows, columns)
            ]
        )
        for count in cycles
    ]
    return cycles / min(height, width), np.array(gains)


def _grating_gain(adaptor: Adaptor, pictures: Array, wave: Array) -> float:
    """The share of one grating that passes; `wave` is its phase at every pixel."""
    grating = (AMPLITUDE * np.cos(wave)).astype(np.float32)
    difference = adaptor(pictures + grating) - adaptor(pictures - grating)
    projected = np.mean(difference * np.cos(wave))
    return float(projected / (2 * AMPLITUDE * np.mean(np.cos(wave) ** 2)))

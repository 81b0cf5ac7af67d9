"""What an adaptor does to an image, measured from outside by feeding it pictures. Works for any adaptor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.data import Images
from soda_tta.types import Array

PICTURES = 32  # for tone; a grating is tried on the first GRATED of them
GRATED = 4
LARGEST = 128  # pixels; larger images are cut to their centre
AMPLITUDE = (
    0.02  # of a grating: five 8-bit steps, small against an image and large against rounding
)
LEVELS = 32  # of the tone curve
FREQUENCIES = 14
ALONE = 10  # images that are given a tone curve of their own
ALIKE = 0.06  # of the pixel range: curves that differ by more are not one curve


@dataclass(frozen=True)
class Response:
    """Tone and frequency response. Levels, shifts and spreads are shares of the pixel range."""

    drawn: bool  # measured on pictures drawn for it, not on the run's images
    pictures: int
    level: Array  # pixel values that occur
    tone: Array  # (3, levels): what each becomes on average, by channel; NaN where a channel has too few pixels
    curves: list[tuple[Array, Array]]  # of some images alone, in grey: levels, and what they become
    frequency: Array  # cycles a pixel
    gain: Array  # 1: a fine pattern of this frequency passes unchanged
    shift: Array  # (3,): mean change of each channel
    contrast: float  # spread of the pixels after, over the spread before
    change: float  # root mean square change of a pixel

    @property
    def common(self) -> bool:
        """Whether all images are given the same tone curve; an adaptor that looks at each may give each its own."""
        grey = np.nanmean(self.tone, axis=0)
        gaps = [after - np.interp(level, self.level, grey) for level, after in self.curves]
        return not gaps or float(np.sqrt(np.mean(np.concatenate(gaps) ** 2))) < ALIKE


def measure(adaptor: Adaptor, size: tuple[int, int], images: Images | None) -> Response:
    """Feed `adaptor` the run's images, or drawn pictures of `size` if there are none at hand."""
    pictures = draw_pictures(size) if images is None else some_images(images)
    adapted = adaptor(pictures)
    level, tone = tone_curve(pictures, adapted)
    grey = [
        part.mean(axis=1, keepdims=True).repeat(3, axis=1)
        for part in (pictures[:ALONE], adapted[:ALONE])
    ]
    alone = [tone_curve(*(part[i : i + 1] for part in grey)) for i in range(len(grey[0]))]
    frequency, gain = frequency_response(adaptor, pictures[:GRATED])
    spread = float(pictures.std(axis=(2, 3)).mean())
    return Response(
        drawn=images is None,
        pictures=len(pictures),
        level=level,
        tone=tone,
        curves=[(levels, tones[0]) for levels, tones in alone if len(levels)],
        frequency=frequency,
        gain=gain,
        shift=(adapted - pictures).mean(axis=(0, 2, 3)),
        contrast=float(adapted.std(axis=(2, 3)).mean()) / spread if spread > 1e-6 else 1.0,
        change=float(np.sqrt(np.mean((adapted - pictures) ** 2))),
    )


def some_images(images: Images) -> Array:
    """Evenly spread over the set."""
    chosen = np.unique(np.linspace(0, len(images) - 1, min(PICTURES, len(images))).astype(int))
    return centre(images[chosen])


def centre(pictures: Array) -> Array:
    height, width = pictures.shape[2:]
    top, left = max(0, height - LARGEST) // 2, max(0, width - LARGEST) // 2
    return np.ascontiguousarray(pictures[:, :, top : top + LARGEST, left : left + LARGEST])


def draw_pictures(size: tuple[int, int]) -> Array:
    """Clouds whose spectrum falls as that of photographs does (amplitude 1/f), over the whole pixel range."""
    height, width = min(size[0], LARGEST), min(size[1], LARGEST)
    generator = np.random.default_rng(0)
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    radius[0, 0] = np.inf  # no weight on the mean
    grey, colour = (generator.standard_normal((PICTURES, depth, height, width)) for depth in (1, 3))
    clouds = np.fft.irfft2(np.fft.rfft2(grey + 0.3 * colour) / radius, s=(height, width))
    clouds /= 2.5 * clouds.std(axis=(2, 3), keepdims=True) + 1e-12
    brightness = generator.uniform(0.3, 0.7, (PICTURES, 1, 1, 1))
    return np.clip(brightness + 0.5 * clouds, 0, 1).astype(np.float32)


def tone_curve(pictures: Array, adapted: Array) -> tuple[Array, Array]:
    """For each pixel value, the mean of what it becomes; values are gathered in LEVELS bins."""
    tones, seen = np.full((3, LEVELS), np.nan), np.zeros(LEVELS)
    totals = np.zeros(LEVELS)
    for channel in range(3):
        place = np.minimum((pictures[:, channel] * LEVELS).astype(int), LEVELS - 1).ravel()
        count = np.bincount(place, minlength=LEVELS)
        enough = count >= max(10, place.size // 2000)
        tones[channel, enough] = (
            np.bincount(place, adapted[:, channel].ravel(), LEVELS)[enough] / count[enough]
        )
        totals += np.bincount(place, pictures[:, channel].ravel(), LEVELS) * enough
        seen += count * enough
    return totals[seen > 0] / seen[seen > 0], tones[:, seen > 0]


def frequency_response(adaptor: Adaptor, pictures: Array) -> tuple[Array, Array]:
    """How much of a faint grating laid over the pictures comes out again, for coarse to fine gratings.

    The difference between the picture with the grating and with its negative is projected on the grating, so that
    what the adaptor does to the picture itself cancels. Whole numbers of cycles keep gratings orthogonal.
    """
    height, width = pictures.shape[2:]
    room = AMPLITUDE + (1 - 2 * AMPLITUDE) * pictures  # nothing clips
    finest = max(1, (min(height, width) - 1) // 2)
    cycles = np.unique(np.round(np.linspace(1, finest, FREQUENCIES)).astype(int))
    rows, columns = np.arange(height)[:, None] / height, np.arange(width)[None] / width
    phases = np.random.default_rng(1).uniform(0, 2 * np.pi, (len(pictures), 1, 1, 1))
    gains = []
    for count in cycles:
        both = []
        for angle in (
            2 * np.pi * count * rows + 0 * columns,
            2 * np.pi * count * columns + 0 * rows,
        ):
            wave = angle + phases
            grating = (AMPLITUDE * np.cos(wave)).astype(np.float32)
            difference = adaptor(room + grating) - adaptor(room - grating)
            both.append(
                float(
                    np.mean(difference * np.cos(wave))
                    / (2 * AMPLITUDE * np.mean(np.cos(wave) ** 2))
                )
            )
        gains.append(np.mean(both))
    return cycles / min(height, width), np.array(gains)

"""Panes of frost: drawn by this package, or read from a folder of photographs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from soda_tta.data.corruptions.arrays import Bytes
from soda_tta.errors import CorruptionError

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}
_PUBLISHED = {f"frost{number}" for number in range(1, 7)}
_PANE = (480, 640)  # rows, columns: about a hundred thousand different crops of 224 pixels
_FERNS = 600  # per pane; fewer leave holes, more blend into an even grey

# Mean and spread of red, green and blue, then the weights of ferns, grain and slow drifts. Chosen
# so that the panes together darken, tint and disturb an image as photographs of frost do.
_LOOKS = (
    ((0.30, 0.58, 0.65), (0.11, 0.06, 0.06), (0.4, 0.4, 0.9)),  # glacier
    ((0.79, 0.81, 0.84), (0.08, 0.09, 0.09), (0.6, 0.4, 0.4)),  # rime
    ((0.79, 0.81, 0.84), (0.08, 0.09, 0.09), (0.5, 0.5, 0.4)),  # rime, finer
    ((0.54, 0.60, 0.65), (0.11, 0.11, 0.12), (0.8, 0.5, 0.4)),  # silver
    ((0.44, 0.48, 0.53), (0.17, 0.17, 0.16), (0.7, 0.5, 0.5)),  # slate, at night
)


def panes_for(folder: Path | None, shrink: int, height: int, width: int) -> list[Bytes]:
    """Pictures of frost, each at least as large as this size."""
    pictures = _drawn_panes() if folder is None else _photographs(folder)
    # Every fifth pixel, not the mean of five: this is why the published 32-pixel frost is grainy.
    shrunk = [picture[shrink // 2 :: shrink, shrink // 2 :: shrink] for picture in pictures]
    return [_covering(picture, height, width) for picture in shrunk]


@lru_cache(maxsize=4)
def _photographs(folder: Path) -> list[Bytes]:
    """The photographs of a folder, read once."""
    if not folder.is_dir():
        raise CorruptionError(f"{folder} is not a folder; pass frost=None to use the drawn frost.")
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in _SUFFIXES)
    if not files:
        kinds = ", ".join(sorted(_SUFFIXES))
        raise CorruptionError(
            f"{folder} holds no photograph ({kinds}); add one or pass frost=None."
        )
    if {file.stem for file in files} == _PUBLISHED:
        # The published generator lists six photographs and draws from the first five. The sixth is
        # the darkest: with it, CIFAR-10 accuracy is 3 points lower than on the published images.
        files = files[:5]
    return [_opened(file) for file in files]


def _opened(file: Path) -> Bytes:
    """One photograph as 8-bit RGB."""
    try:
        with Image.open(file) as picture:
            return np.asarray(picture.convert("RGB"))
    except OSError as error:
        raise CorruptionError(
            f"{file} is not a readable image; remove it from the folder."
        ) from error


def _covering(picture: Bytes, height: int, width: int) -> Bytes:
    """The picture, enlarged just enough to cover this size."""
    scale = max(height / picture.shape[0], width / picture.shape[1])
    if scale <= 1:
        return picture
    wide = max(width, round(picture.shape[1] * scale))
    high = max(height, round(picture.shape[0] * scale))
    return np.asarray(Image.fromarray(picture).resize((wide, high), Image.Resampling.BICUBIC))


@lru_cache(maxsize=1)
def _drawn_panes() -> list[Bytes]:
    """Five fixed panes; the seed of a corruption chooses one of them and the crop."""
    return [_drawn_pane(number, *look) for number, look in enumerate(_LOOKS)]


def _drawn_pane(
    number: int,
    mean: tuple[float, ...],
    spread: tuple[float, ...],
    weights: tuple[float, float, float],
) -> Bytes:
    """Draw one pane from ferns, grain and slow drifts, mixed by these weights."""
    generator = np.random.default_rng((1_000_003, number))
    ferns, grain, drift = weights
    structure = _standard(
        ferns * _ferns(generator) + grain * _haze(generator, 1.0) + drift * _haze(generator, 2.0)
    )
    levels = np.array(mean) + np.array(spread) * structure[..., None]
    return (np.clip(levels, 0, 1) * 255).astype(np.uint8)


def _haze(generator: np.random.Generator, roughness: float) -> npt.NDArray[np.float64]:
    """A random field whose amplitude falls with this power of frequency, as in natural texture."""
    rows, columns = _PANE
    frequency = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns))
    frequency[0, 0] = 1
    spectrum = np.fft.rfft2(generator.standard_normal(_PANE)) / frequency**roughness
    return _standard(np.fft.irfft2(spectrum, s=_PANE))


def _ferns(generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Needles of ice with barbs at sixty degrees, the angle at which ice branches."""
    rows, columns = _PANE
    pane = Image.new("L", (columns, rows), 60)
    pen = ImageDraw.Draw(pane)
    for _ in range(_FERNS):
        root = generator.random(2) * (columns, rows)
        length = generator.gamma(2.0, 22.0)
        angle = generator.uniform(0, 2 * np.pi)
        shade = int(generator.integers(30, 256))
        _stroke(pen, root, angle, length, shade, 2)
        for along in np.arange(0.1, 1, 4 / max(length, 5)):
            joint = root + along * length * np.array([np.cos(angle), np.sin(angle)])
            for side in (-np.pi / 3, np.pi / 3):
                barb = (1 - along) * length * generator.uniform(0.2, 0.5)
                _stroke(pen, joint, angle + side, barb, int(shade * generator.uniform(0.6, 1)), 1)
    # Lines drawn by Pillow are sharper than those of a photograph.
    softened = pane.filter(ImageFilter.GaussianBlur(0.5))
    return _standard(np.asarray(softened, dtype=np.float64))


def _stroke(
    pen: ImageDraw.ImageDraw,
    start: npt.NDArray[np.float64],
    angle: float,
    length: float,
    shade: int,
    width: int,
) -> None:
    """Draw a line of this length from `start`."""
    end = start + length * np.array([np.cos(angle), np.sin(angle)])
    pen.line((start[0], start[1], end[0], end[1]), fill=shade, width=width)


def _standard(field: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The field shifted and scaled to mean 0 and standard deviation 1."""
    return np.asarray((field - field.mean()) / field.std())

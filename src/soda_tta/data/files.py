"""Image files: found, opened carefully, and turned into bytes."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from soda_tta.errors import ImageError
from soda_tta.types import Array

DARK = (
    "there are images of more than 8 bits with no number above 4,095, which are read as almost black. If their camera "
    "has 12 bits or fewer, scale them to 16 first."
)
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".gif"}


def named_as_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def find_image_files(folder: Path) -> list[Path]:
    """Every image below a folder, in a stable order; hidden files (macOS leaves ._x.png) are none.

    Links to folders are not followed, so none can loop.
    """
    found = sorted(path for path in folder.rglob("*") if named_as_image(path) and path.is_file())
    if not found:
        raise ImageError(f"{folder} holds no image ({', '.join(sorted(SUFFIXES))}).")
    return found


def read_image(path: Path, size: tuple[int, int] | None = None) -> Array:
    """One file as uint8 HWC RGB; with `size` (height, width) its shorter side is resized, its centre cropped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                image.load()
                picture = as_rgb(image)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ImageError(
            f"{path} would unpack to more pixels than is safe ({error}); shrink it first."
        ) from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise ImageError(f"{path} cannot be read as an image: {error}") from error
    return np.asarray(picture if size is None else cropped(picture, size))


def as_rgb(image: Image.Image) -> Image.Image:
    """Grey is repeated, transparency is dropped, 16 bits become 8 by their upper byte; pixels stay where they lie."""
    if image.mode == "F":
        raise ImageError(
            "it holds floating-point numbers, whose range nobody knows; save it with 8 or 16 bits."
        )
    if image.mode.startswith("I"):
        wide = np.clip(np.asarray(image).astype(np.int64), 0, 65535)
        if wide.max(initial=0) < 4096:
            warn_once(DARK)
        image = Image.fromarray((wide >> 8).astype(np.uint8))
    return image.convert("RGB")


@cache
def warn_once(text: str) -> None:
    """Python's own "once" forgets whenever somebody changes the filters, as `read_image` does."""
    warnings.warn(text, stacklevel=3)


def cropped(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The shorter side resized to fit, then the centre."""
    height, width = size
    ratio = max(height / picture.height, width / picture.width)
    fitted = (max(width, round(picture.width * ratio)), max(height, round(picture.height * ratio)))
    picture = picture.resize(fitted, Image.Resampling.BILINEAR)
    left, top = (fitted[0] - width) // 2, (fitted[1] - height) // 2
    return picture.crop((left, top, left + width, top + height))

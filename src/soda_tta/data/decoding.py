"""One image file as RGB pixels, whatever its depth, transparency and orientation."""

from __future__ import annotations

import io
import warnings
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from PIL import ExifTags, Image

from soda_tta.data.colours import WHITE, Colour, colour_text
from soda_tta.data.dicom import FIRST_FRAME, read_dicom
from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError
from soda_tta.types import Array

HEIC_SUFFIXES = {".heic", ".heif"}
DICOM_SUFFIXES = {".dcm", ".dicom"}
DARK = (
    "some images have more than 8 bits but no value above 4,095, so they are read as almost black. "
    "If their camera has 12 bits or fewer, scale the values to 16 bits first."
)
# What is noted on the card of a run about files that are not plain 8-bit RGB.
TURNED = "turned upright (EXIF orientation)"
UPPER_BYTE = "colours of 16 bits read with 8"


class Decoded(NamedTuple):
    """One image."""

    pixels: Array  # uint8 or uint16 (height, width, 3), RGB
    notes: tuple[str, ...]  # what had to be decided to get them


def decode(path: Path, resize: Resize | None = None, over: Colour = WHITE) -> Decoded:
    """Decode one file; every command reads image files with this function.

    Parameters
    ----------
    path : Path
        An image file that Pillow, pillow-heif or pydicom can decode.
    resize : Resize, optional
        Applied to the decoded image. Default: None, the image stays as it is.
    over : Colour, default white
        What shows through where the image is transparent.
    """
    return _decode(path, path, path.suffix, resize, over)


def decode_bytes(
    data: bytes, name: str, resize: Resize | None = None, over: Colour = WHITE
) -> Decoded:
    """Decode the content of one file, to the same pixels as `decode`.

    Parameters
    ----------
    data : bytes
        What the file holds.
    name : str
        What it is called in errors. Its suffix tells HEIC and DICOM; without one the content does.
    resize, over
        As for `decode`.
    """
    suffix = Path(name).suffix or _suffix_by_content(data)
    return _decode(io.BytesIO(data), name, suffix, resize, over)


def _suffix_by_content(data: bytes) -> str:
    """The suffix of a format that Pillow does not recognise itself; empty for all others."""
    if data[128:132] == b"DICM":
        return ".dcm"
    return ".heic" if data[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1") else ""


def _decode(
    source: Path | BinaryIO, name: Path | str, suffix: str, resize: Resize | None, over: Colour
) -> Decoded:
    """Decode a file on disk or in memory."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            if suffix.lower() in DICOM_SUFFIXES:
                pixels, notes = read_dicom(source)
            else:
                pixels, notes = _read_picture(source, suffix, over)
            return Decoded(_resized(pixels, resize), tuple(notes))
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ImageError(
            f"{name} would unpack to more pixels than is safe ({error}); shrink it first."
        ) from error
    except Exception as error:  # a damaged file can raise anything in a decoder
        reason = str(error).replace(f" {source!r}", "") or type(error).__name__
        raise ImageError(f"{name} cannot be read as an image: {reason}") from error


def read_image(path: Path, resize: Resize | None = None, over: Colour = WHITE) -> Array:
    """The pixels of one file, see `decode`."""
    return decode(path, resize, over).pixels


def open_picture(source: Path | BinaryIO, suffix: str | None = None) -> Image.Image:
    """Open a file with Pillow, which learns to read HEIC files when the first one is opened.

    Parameters
    ----------
    source : Path or binary file
    suffix : str, optional
        Of the file name. Default: that of the path.
    """
    if suffix is None and isinstance(source, Path):
        suffix = source.suffix
    if suffix is not None and suffix.lower() in HEIC_SUFFIXES:
        _learn_heic()
    return Image.open(source)


@cache
def _learn_heic() -> None:
    try:
        from pillow_heif import register_heif_opener
    except ImportError as error:
        message = "HEIC files need pillow-heif: pip install 'soda-tta[heic]'."
        raise ImageError(message) from error
    register_heif_opener()


def _read_picture(source: Path | BinaryIO, suffix: str, over: Colour) -> tuple[Array, list[str]]:
    """The pixels of a file, and what had to be decided to get them."""
    with open_picture(source, suffix) as image:
        bits = [str(tile[3]) for tile in getattr(image, "tile", ())]  # gone once it is loaded
        is_turned = orientation_of(image) != 1  # Pillow itself turns a TIFF while it loads it
        image.load()
        pixels, is_transparent = rgb_pixels(image, over)
        turn = orientation_of(image)
        conditions = {
            TURNED: is_turned or turn != 1,
            f"transparent, laid over {colour_text(over)}": is_transparent,
            UPPER_BYTE: pixels.dtype == np.uint8 and any(";16" in each for each in bits),
            FIRST_FRAME: _has_more_frames(image),  # last: it moves on in the file
        }
    return turned(pixels, turn), [note for note, holds in conditions.items() if holds]


def _has_more_frames(image: Image.Image) -> bool:
    try:
        return getattr(image, "n_frames", 1) > 1
    except Exception:  # what follows the first frame is damaged, and not used
        return True


def orientation_of(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8; 1 (upright) if there is none or it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about damaged tags
            value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # damaged EXIF does not make the pixels unreadable
        return 1
    return value if value in range(1, 9) else 1


def turned(pixels: Array, orientation: int) -> Array:
    """The pixels (height, width, 3) as the EXIF orientation says they are to be displayed.

    >>> turned(np.array([[[1], [2]]]), 6).tolist()  # a quarter turn clockwise
    [[[1]], [[2]]]
    """
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def rgb_pixels(image: Image.Image, over: Colour = WHITE) -> tuple[Array, bool]:
    """The pixels as RGB, and whether any of them is transparent.

    uint8 (height, width, 3), or uint16 where Pillow gives 16 bits: for grey images. Grey is
    repeated, transparent pixels are laid over a colour, CMYK is converted without its profile.

    Parameters
    ----------
    image : Image
        In any mode of Pillow.
    over : Colour, default white
        What shows through where the image is transparent.
    """
    if image.mode == "F":
        raise ImageError(
            "it holds floating-point values of unknown range; save it with 8 or 16 bits."
        )
    if image.mode.startswith("I"):
        return _deep_grey(image, over)
    if not image.has_transparency_data:
        return np.asarray(image.convert("RGB")), False
    rgba = np.asarray(image.convert("RGBA")).astype(np.uint32)
    opacity = rgba[..., 3:]
    mixed = rgba[..., :3] * opacity + np.array(over, np.uint32) * (255 - opacity)
    return ((mixed + 127) // 255).astype(np.uint8), bool(opacity.min() < 255)


def _deep_grey(image: Image.Image, over: Colour) -> tuple[Array, bool]:
    """Grey of 16 bits, with all of them."""
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise ImageError(
            f"it holds values from {values.min():,} to {values.max():,}; images have 8 or 16 bits, "
            "so scale the values to 0 to 65,535."
        )
    if values.max() < 4096:
        warn_once(DARK)
    pixels = np.repeat(values[..., None].astype(np.uint16), 3, axis=2)
    key = image.info.get("transparency")  # a PNG may declare one grey transparent
    is_hole = values == key if isinstance(key, int) else np.zeros(values.shape, bool)
    pixels[is_hole] = np.array(over, np.uint16) * 257
    return pixels, bool(is_hole.any())


def _resized(pixels: Array, resize: Resize | None) -> Array:
    """The pixels after a resize, with as many bits as before."""
    if resize is None or resize.size in (None, pixels.shape[:2]):
        return pixels
    if pixels.dtype == np.uint8:
        return np.asarray(resize(Image.fromarray(pixels)))
    channels = np.moveaxis(pixels.astype(np.float32), 2, 0)  # Pillow has no 16-bit RGB
    resized = [np.asarray(resize(Image.fromarray(channel))) for channel in channels]
    stacked: Array = np.rint(np.stack(resized, axis=2))
    return stacked.astype(np.uint16)


@cache
def warn_once(message: str) -> None:
    """Warn once per process: Python's own "once" resets when the filters change, as above."""
    warnings.warn(message, stacklevel=3)

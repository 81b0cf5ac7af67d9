"""Image files: listed in a stable order, decoded safely, returned as 8-bit RGB."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError
from soda_tta.types import Array

DARK = (
    "some images have more than 8 bits but no value above 4,095, so they are read as almost black. "
    "If their camera has 12 bits or fewer, scale the values to 16 bits first."
)
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".gif"}
# Images too, but not read here. Other files (.txt, .csv ...) are left out without a word.
UNSUPPORTED = {
    *(".heic", ".heif", ".avif", ".jxl", ".jp2", ".j2k", ".jfif", ".svg", ".psd", ".exr", ".hdr"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf", ".raw", ".dcm", ".ico"),
}


def named_as_image(path: Path) -> bool:
    """Whether the suffix is that of an image and the file is not hidden."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def find_image_files(folder: Path) -> list[Path]:
    """Every image file below a folder, sorted by path.

    Hidden files and folders are skipped (macOS leaves ``._x.png`` behind). A link to a folder is
    followed if it leads elsewhere; one that leads into `folder` or above it is skipped, so no
    image is listed twice and no link can loop.

    Parameters
    ----------
    folder : Path
        Searched with all its subfolders.
    """
    files = sorted(_files_below(folder, [folder.resolve()]))
    paths = [path for path in files if named_as_image(path)]
    ignored = ignored_files(files)
    if not paths:
        text = f"{folder} holds no image ({', '.join(sorted(SUFFIXES))})."
        raise ImageError(f"{text} It holds {ignored}." if ignored else text)
    if ignored:
        warnings.warn(f"{folder}: ignored {ignored}.", stacklevel=2)
    return paths


def ignored_files(files: Iterable[Path]) -> str:
    """How many images of formats that are not read are among the files; empty if there are none.

    >>> ignored_files([Path("a.HEIC"), Path("b.heic"), Path("notes.txt")])
    '2 .heic files, which cannot be read: convert them to .png or .jpg'
    """
    suffixes = Counter(path.suffix.lower() for path in files if not path.name.startswith("."))
    counts = [(suffix, suffixes[suffix]) for suffix in sorted(UNSUPPORTED) if suffixes[suffix]]
    named = [f"{count:,} {suffix} file{'s' * (count > 1)}" for suffix, count in counts]
    if not named:
        return ""
    return f"{', '.join(named)}, which cannot be read: convert them to .png or .jpg"


def _files_below(folder: Path, linked: list[Path]) -> Iterator[Path]:
    """All files below a folder; `linked` are the folders whose content is listed already."""
    for path in folder.iterdir():
        if path.is_dir():
            if path.name.startswith("."):
                continue
            if path.is_symlink():
                target = path.resolve()
                if any(target.is_relative_to(f) or f.is_relative_to(target) for f in linked):
                    continue
                linked.append(target)
            yield from _files_below(path, linked)
        elif path.suffix.lower() in SUFFIXES | UNSUPPORTED and path.is_file():
            yield path


def read_image(path: Path, resize: Resize | None = None) -> Array:
    """Decode one file as uint8 (height, width, 3), RGB.

    Parameters
    ----------
    path : Path
        An image file that Pillow can decode.
    resize : Resize, optional
        Applied to the decoded image. Default: None, the image stays as it is.
    """
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
    return np.asarray(picture if resize is None else resize(picture))


def as_rgb(image: Image.Image) -> Image.Image:
    """Repeat grey, drop transparency, reduce 16 bits to their upper 8; never rotate."""
    if image.mode == "F":
        raise ImageError(
            "it holds floating-point values of unknown range; save it with 8 or 16 bits."
        )
    if image.mode.startswith("I"):
        values = np.clip(np.asarray(image).astype(np.int64), 0, 65535)
        if values.max(initial=0) < 4096:
            warn_once(DARK)
        image = Image.fromarray((values >> 8).astype(np.uint8))
    return image.convert("RGB")


@cache
def warn_once(message: str) -> None:
    """Warn once per process: Python's own "once" resets when the filters change, as above."""
    warnings.warn(message, stacklevel=3)

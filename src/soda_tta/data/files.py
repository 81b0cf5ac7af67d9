"""Image files: found below a folder and listed in a stable order."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from soda_tta.data.decoding import DICOM_SUFFIXES, HEIC_SUFFIXES
from soda_tta.errors import ImageError

SUFFIXES = {
    *(".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".gif"),
    *HEIC_SUFFIXES,
    *DICOM_SUFFIXES,
}
# Images too, but not read here. Other files (.txt, .csv ...) are left out without a word.
UNSUPPORTED = {
    *(".avif", ".jxl", ".jp2", ".j2k", ".jfif", ".svg", ".psd", ".exr", ".hdr"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf", ".raw", ".ico"),
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

    >>> ignored_files([Path("a.AVIF"), Path("b.avif"), Path("notes.txt")])
    '2 .avif files, which cannot be read: convert them to .png or .jpg'
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

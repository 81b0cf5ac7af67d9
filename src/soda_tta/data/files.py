"""Image files: found below a folder and listed in a stable order."""

from __future__ import annotations

import os
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
LISTED = SUFFIXES | UNSUPPORTED


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
    files = sorted(folder / name for name in _names_below(folder, "", [folder.resolve()]))
    paths = [path for path in files if named_as_image(path)]
    ignored = ignored_files(files)
    if not paths:
        text = f"{folder} holds no image ({', '.join(sorted(SUFFIXES))})."
        raise ImageError(f"{text} It holds {ignored}." if ignored else text)
    if ignored:
        warnings.warn(f"{folder}: ignored {ignored}.", stacklevel=2)
    return paths


def each_image_name(folder: Path) -> Iterator[str]:
    """The names of the same files, relative to the folder, in an order of their own.

    One at a time, for folders that are too long to list.
    """
    for name in _names_below(folder, "", [folder.resolve()]):
        if _suffix(name) in SUFFIXES and not name.rpartition("/")[2].startswith("."):
            yield name


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


def _names_below(folder: Path, prefix: str, linked: list[Path]) -> Iterator[str]:
    """The names of all files below a folder, in the order of their paths, after a prefix.

    `linked` are the folders whose content is listed already.
    """
    names = []
    folders = set()
    with os.scandir(folder) as entries:  # it knows what is a folder without a look at each file
        for entry in entries:
            try:
                is_folder = entry.is_dir()
                is_listed = is_folder or (_suffix(entry.name) in LISTED and entry.is_file())
            except OSError:  # a link in a loop
                continue
            if is_folder:
                folders.add(entry.name)
            if is_listed:
                names.append(entry.name)  # names, not paths: a folder may hold millions
    for name in sorted(names):
        if name not in folders:
            yield prefix + name
        elif not name.startswith("."):
            path = folder / name
            if path.is_symlink():
                target = path.resolve()
                if any(target.is_relative_to(f) or f.is_relative_to(target) for f in linked):
                    continue
                linked.append(target)
            yield from _names_below(path, f"{prefix}{name}/", linked)


def _suffix(name: str) -> str:
    """The suffix, without the cost of a path."""
    return os.path.splitext(name)[1].lower()  # noqa: PTH122

"""`open_sample`: some images of a source, chosen at random, without reading the others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.data.archives.places import is_address
from soda_tta.data.archives.sample import LIST, Sample, draw
from soda_tta.data.archives.shards import CONTAINERS, TABLES, find_archive
from soda_tta.data.catalogue import find_source
from soda_tta.data.files import SUFFIXES
from soda_tta.data.images import Images, Subset
from soda_tta.data.layouts import SPLITS, recognise, split_folder
from soda_tta.data.lazy import FileImages
from soda_tta.data.reading import Reading
from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError
from soda_tta.randomness import RandomStream, generator

LISTED_AT_ONCE = 5000  # names
FOLDERS = ("folder", "classes", "domains", "splits", "csv")  # layouts of plain image files


def open_sample(
    source: Any,
    count: int,
    seed: int,
    reading: Reading,
    kept: Path | None,
    otherwise: Callable[[Any, Reading], Images],
) -> Images:
    """Images of a source, chosen at random.

    Parameters
    ----------
    source : object
        Whatever `open_images` takes, and archives: tar and Parquet files, addresses.
    count : int
        Images to choose; all of them if there are fewer.
    seed : int
    reading : Reading
    kept : Path or None
        A folder that keeps the list, and images that are not files on this machine: what is there
        already is opened again.
    otherwise : callable
        Opens a source that is not an archive.
    """
    if count < 1:
        raise ImageError(f"sample={count} is not valid; give the number of images to learn from.")
    archive = archive_of(source)
    if archive is None:
        return sampled(otherwise(source, reading), count, seed)
    found = find_archive(archive, LISTED_AT_ONCE)
    if found.is_imagenet:  # as every command reads such folders
        size = reading.resize.size
        view = Resize.imagenet() if size is None else Resize.imagenet(size)
        reading = replace(reading, resize=view)
    if kept is not None:
        identity = archive if is_address(archive) else str(Path(archive).absolute())
        if (kept / LIST).exists():
            return SampledFiles(Sample.read(kept, identity, count, seed), reading, archive)
        sample = draw(found, count, seed, kept)
        sample.write(kept, identity)
        return SampledFiles(sample, reading, archive)
    folder = tempfile.TemporaryDirectory(prefix="soda-tta-")
    images = SampledFiles(draw(found, count, seed, Path(folder.name)), reading, archive)
    images.folder = folder  # removed with the images
    return images


def archive_of(source: Any) -> str | None:
    """The archive that a source is: files that can be listed without reading them; else None.

    Of a folder with `train/` and `val/`, it is the latter.
    """
    if not isinstance(source, str | Path):
        return None
    text = str(source)
    if is_archive_only(text):
        return text
    if text.lower().endswith(TABLES):
        return text
    found = find_source(source)
    if found.name is not None or not found.path.is_dir():
        return None
    layout = recognise(found.path)
    if layout not in FOLDERS:
        return None
    if layout == "splits" and any((found.path / name).is_dir() for name in SPLITS["test"]):
        return str(split_folder(found.path, "test"))
    return text


def is_archive_only(source: str) -> bool:
    """Whether this is an archive that is never opened as a whole: an address, tars, Parquet."""
    if is_address(source) or source.lower().endswith(CONTAINERS):
        return True
    path = Path(source)
    if path.is_dir():
        return _holds_containers(path)
    return ("*" in source or "{" in source) and not path.exists()


def _holds_containers(folder: Path) -> bool:
    """Whether a folder begins with tar or Parquet files; of a long folder, few names are read."""
    for path in folder.iterdir():
        if path.name.lower().endswith(CONTAINERS):
            return True
        if path.suffix.lower() in SUFFIXES:
            return False
    return False


def sampled(images: Images, count: int, seed: int) -> Images:
    """Some images of a set, chosen at random, in their order."""
    random = generator(seed, RandomStream.SAMPLE)
    places = np.sort(random.permutation(len(images))[:count])
    chosen = Subset(images, places)
    chosen.sample = {"asked": count, "of": len(images), "seed": seed}
    return chosen


class SampledFiles(FileImages):
    """The files of a sample, under their names in the archive.

    Parameters
    ----------
    sample : Sample
    reading : Reading
    archive : str
        Where they come from.
    """

    folder: tempfile.TemporaryDirectory[str] | None = None  # of a sample that nobody keeps

    def __init__(self, sample: Sample, reading: Reading, archive: str) -> None:
        self.names = {chosen.path: chosen.name for chosen in sample.images}
        is_table = archive.lower().endswith(".csv") and not is_address(archive)
        table = Path(archive) if is_table else None
        super().__init__([chosen.path for chosen in sample.images], reading, table=table)
        self.sample = sample.facts

    def _name_of(self, path: Path) -> str:
        return self.names[path]

"""`open_images`: the one front door for images, used by every command that takes --images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.data.catalogue import find_source
from soda_tta.data.colours import colour_of
from soda_tta.data.files import find_image_files
from soda_tta.data.formats import cifar, imagenet, tables, trees
from soda_tta.data.formats.arrays import read_images
from soda_tta.data.images import ArrayImages, Images
from soda_tta.data.layouts import SPLITS, recognise, split_folder
from soda_tta.data.lazy import FileImages, LazyImages
from soda_tta.data.load import load_dataset
from soda_tta.data.reading import OnBadImage, Reading
from soda_tta.data.resizing import Resize, check_size, size_text
from soda_tta.data.sampling import is_archive_only, open_sample
from soda_tta.data.sequences import SequenceImages, spool
from soda_tta.errors import ImageError

PLAIN = Reading(on_bad_image="fail")


def open_images(
    source: Any,
    size: int | tuple[int, int] | None = None,
    *,
    on_bad_image: OnBadImage = "fail",
    over: str | Sequence[int] = "white",
    sample: int | None = None,
    seed: int = 0,
    kept: Path | None = None,
) -> Images:
    """Open images, whatever they come as. Labels that lie next to them are not read.

    Parameters
    ----------
    source : object
        An array; a folder, with all images below it in the order of their paths; an image, .npy,
        .npz or .csv file, or a list of image files; a data set of the catalogue by name
        ("cifar10", "pacs/sketch"); a sequence or an iterator of images, batches or pairs with
        labels. A set of images is returned as it is.
    size : int or (int, int), optional
        Resize files to this height and width in pixels, see `load_dataset`. Default: files stay
        as they are, except WordNet folders (ImageNet), which become 224x224.
    on_bad_image : {"fail", "skip"}, default "fail"
        What happens if a file cannot be read. "skip" decodes every file once, leaves out those
        that cannot be read, warns with their names, and the card of a run lists them.
    over : str or sequence of int, default "white"
        The colour under transparent pixels of files: "white", "black", or red, green and blue (0
        to 255).
    sample : int, optional
        So many of the images, chosen at random; the pixels of the others are not read. Archives
        too big to open, tar and Parquet files and addresses (s3:// ...), are opened only so.
        Default: None, all images.
    seed : int, default 0
        The sample follows from it.
    kept : Path, optional
        A folder in which the list of the sample is kept, and found again. Default: None.

    Returns
    -------
    Images
        An iterator is written once to a temporary file and read from there, so it need not fit
        in memory. Files are decoded now if they take less than 1 GiB, else each time.

    Examples
    --------
    >>> open_images(np.zeros((5, 8, 8, 3), np.uint8))[slice(0, 2)].shape
    (2, 3, 8, 8)
    """
    wanted = None if size is None else check_size(size)
    reading = Reading(Resize(wanted), colour_of(over), on_bad_image)
    if sample is not None:
        images = open_sample(source, sample, seed, reading, kept, find_images)
    else:
        images = find_images(source, reading)
    if isinstance(images, LazyImages) and images is not source:
        images.preload()  # so that a broken file is found before the first query
    if wanted is not None and tuple(images.size) != wanted:
        raise ImageError(
            f"the images are {size_text(images.size)}; size= resizes files only: "
            "resize these yourself."
        )
    return images


def find_images(source: Any, reading: Reading = PLAIN) -> Images:
    """Images from any Python object; of files only the first is decoded, for the size."""
    if isinstance(source, Images):
        return source
    if isinstance(source, str | Path):
        if is_archive_only(str(source)):
            raise ImageError(
                f"{source} is an archive, which is not opened as a whole; give sample=5000, to "
                "learn from so many of its images, chosen at random."
            )
        return _from_path(source, reading)
    if hasattr(source, "__array__") and not isinstance(source, list | tuple):
        return ArrayImages(np.asanyarray(source))
    if _is_list_of_files(source):
        return FileImages([Path(item) for item in source], reading)
    indexed = hasattr(source, "__len__") and hasattr(source, "__getitem__")
    if isinstance(source, Mapping) or not (indexed or isinstance(source, Iterable)):
        raise ImageError(
            f"{type(source).__name__} is not a set of images; "
            "pass an array, a folder, files or a data set."
        )
    return SequenceImages(source) if indexed else spool(source)


def _is_list_of_files(source: Any) -> bool:
    """Whether this is a list of paths, not of images."""
    if not isinstance(source, list | tuple) or not source:
        return False
    return all(isinstance(item, str | Path) for item in source)


def _from_path(source: str | Path, reading: Reading) -> Images:
    """Images from a name of the catalogue, a file or a folder."""
    found = find_source(source)
    if found.name is not None:
        size = reading.resize.size
        how = reading.on_bad_image
        return load_dataset(source, size=size, over=reading.over, on_bad_image=how).images
    layout = recognise(found.path)
    if found.path.is_dir():
        return _from_folder(found.path, layout, reading)
    if layout in ("npy", "npz"):
        return ArrayImages(read_images(found.path), str(found.path))
    if layout == "csv":
        return tables.listed_files(found.path, reading)
    return FileImages([found.path], reading)


def _from_folder(folder: Path, layout: str, reading: Reading) -> Images:
    """All images below a folder, or below its test split; official batches are unpacked."""
    if layout in ("cifar-python", "cifar-binary"):
        return load_dataset(folder).images
    if layout == "cifar-c" and not trees.holds_images(folder):
        example = cifar.corruption_files(folder)[0]
        raise ImageError(f"{folder} holds a file per corruption; give one of them, as {example}.")
    if layout == "splits" and any((folder / name).is_dir() for name in SPLITS["test"]):
        folder = split_folder(folder, "test")
    if layout in ("splits", "classes"):
        reading = imagenet.folder_reading(folder, reading)
    table = folder / "labels.csv" if layout == "csv" else None
    return FileImages(find_image_files(folder), reading, folder, table)

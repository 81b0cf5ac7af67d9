"""`load_dataset`: a data set with its labels, by name or by path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from soda_tta.data.catalogue import find_source
from soda_tta.data.colours import colour_of
from soda_tta.data.dataset import Dataset
from soda_tta.data.formats import cifar, imagenet, tables, trees
from soda_tta.data.formats.arrays import labelled, read_images, read_labels
from soda_tta.data.images import ArrayImages
from soda_tta.data.layouts import LAYOUTS, SPLITS, recognise, split_folder
from soda_tta.data.lazy import FileImages
from soda_tta.data.reading import OnBadImage, Reading
from soda_tta.data.resizing import Resize, check_size
from soda_tta.errors import ImageError

CIFAR_CLASSES = {"cifar10": cifar.CIFAR10, "cifar100": cifar.CIFAR100}


@dataclass(frozen=True)
class Choice:
    """Which part of a data set is wanted, and how."""

    split: str
    domain: str | None
    corruption: str | None
    severity: int
    reading: Reading
    classes: Sequence[str] | None
    title: str | None


def load_dataset(
    source: str | os.PathLike[str],
    *,
    split: str = "test",
    domain: str | None = None,
    corruption: str | None = None,
    severity: int = 5,
    seed: int = 0,
    constants: str | None = None,
    frost: Path | str | None = None,
    size: int | tuple[int, int] | None = None,
    classes: Sequence[str] | None = None,
    over: str | Sequence[int] = "white",
    on_bad_image: OnBadImage | None = None,
) -> Dataset:
    """Open a data set by its name or by its path; images stay on disk until they are read.

    Parameters
    ----------
    source : str or path
        A name of the catalogue ("cifar10"), a name and a part of it ("pacs/sketch"), or a path
        whose layout is recognised. A name is preferred to a folder of that name in the current
        directory; write "./cifar10" for the folder.
    split : {"test", "train"}, default "test"
        For data sets that have both.
    domain : str, optional
        Required for domain/class folders. Default: None.
    corruption : str, optional
        One of the 19. It is read from a set that stores corruptions, and computed on the fly for
        any other. Default: None.
    severity : int, default 5
        From 1 to 5.
    seed : int, default 0
        For a corruption computed on the fly.
    constants : {"cifar", "imagenet"}, optional
        Strength of a corruption computed on the fly. Default: by image size.
    frost : path, optional
        Folder of photographs for "frost". Default: frost is drawn.
    size : int or (int, int), optional
        Resize files to this height and width in pixels. WordNet folders (ImageNet) are resized
        with their usual margin, 256 for 224; any other file is resized to fit, then cropped.
        Default: files stay as they are, except WordNet folders, which become 224x224.
    classes : sequence of str, optional
        Class names in the order of their numbers. Default: alphabetical.
    over : str or sequence of int, default "white"
        The colour under transparent pixels: "white", "black", or red, green and blue (0 to 255).
    on_bad_image : {"fail", "skip"}, optional
        "skip" decodes every file once and leaves out those that cannot be read, with their
        labels; a warning names them. Default: None, a file fails when it is read.

    Returns
    -------
    Dataset
        Images with `labels`, `classes` and a `title`.

    Examples
    --------
    >>> images = load_dataset("cifar10", corruption="fog", severity=3)  # doctest: +SKIP
    >>> images  # doctest: +SKIP
    <cifar10, fog 3: 10000 images of 32x32, 10 classes>
    """
    if split not in SPLITS:
        raise ImageError(f"there is no split {split!r}; choose {' or '.join(SPLITS)}.")
    found = find_source(source, split)
    path = found.path
    layout = recognise(path)
    if found.part is not None:
        if layout == "domains" and domain is None:
            domain = found.part
        else:
            path = path / found.part
            layout = recognise(path)
    if domain is not None and layout != "domains":
        raise ImageError(f"{path} has no domains: it is {LAYOUTS[layout]}.")
    choice = Choice(
        split=split,
        domain=domain,
        corruption=corruption,
        severity=severity,
        reading=Reading(
            Resize(None if size is None else check_size(size)), colour_of(over), on_bad_image
        ),
        classes=CIFAR_CLASSES.get(found.name or "") if classes is None else classes,
        title=found.name,
    )
    dataset = open_layout(path, layout, choice)
    wanted = choice.reading.resize.size
    if wanted is not None and tuple(dataset.size) != wanted:
        raise ImageError(f"{path}: size= resizes files only; resize these arrays yourself.")
    if corruption is None or stores_corruptions(path, layout):
        return dataset
    from soda_tta.data.corrupted import Corrupted  # imports scipy

    return Corrupted(dataset, corruption, severity, seed, constants=constants, frost=frost)


def stores_corruptions(path: Path, layout: str) -> bool:
    """Whether the images on disk are corrupted already."""
    if layout == "npy":
        return cifar.is_corruption_file(path)
    return layout in ("cifar-c", "imagenet-c")


def open_layout(path: Path, layout: str, choice: Choice) -> Dataset:
    """The part of a data set of this layout that is wanted."""
    if layout in ("npz", "npy"):
        return open_arrays(path, layout, choice)
    if layout == "cifar-python":
        return cifar.official_python(path, choice.split, choice.title)
    if layout == "cifar-binary":
        return cifar.official_binary(path, choice.split, choice.title)
    if layout == "cifar-c":
        return cifar.cifar_c(path, choice.corruption, choice.severity, choice.classes, choice.title)
    if layout == "imagenet-c":
        return imagenet.imagenet_c(
            path, choice.corruption, choice.severity, choice.reading, choice.classes, choice.title
        )
    return open_files(path, layout, choice)


def open_arrays(path: Path, layout: str, choice: Choice) -> Dataset:
    """The arrays of one file, or one severity of a file of CIFAR-10-C."""
    if layout == "npy" and cifar.is_corruption_file(path):
        return cifar.cifar_c(path.parent, path.stem, choice.severity, choice.classes)
    images = ArrayImages(read_images(path), str(path))
    title = choice.title or path.stem
    if layout == "npy":
        return Dataset(images, title=title)
    classes = cifar.classes_by_name(path.stem) if choice.classes is None else choice.classes
    return labelled(images, read_labels(path), classes, title, path)


def open_files(path: Path, layout: str, choice: Choice) -> Dataset:
    """Image files: one, those of a table, or those of a tree of folders."""
    title = choice.title
    plain = choice.reading
    if layout == "image":
        return Dataset(FileImages([path], plain, path.parent), title=path.name)
    if layout == "csv":
        table = path / "labels.csv" if path.is_dir() else path
        return tables.labelled_files(table, plain, choice.classes, title)
    if layout == "domains":
        return trees.domain_folders(path, choice.domain, plain, choice.classes, title)
    if layout == "splits":
        folder = split_folder(path, choice.split)
        reading = imagenet.folder_reading(folder, plain)
        title = f"{title or path.name} {choice.split}"
        return trees.class_folders(folder, reading, choice.classes, title)
    if layout == "classes":
        reading = imagenet.folder_reading(path, plain)
        return trees.class_folders(path, reading, choice.classes, title)
    return trees.plain_folder(path, plain)

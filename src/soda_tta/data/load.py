"""The one front door to data sets: by name, or by path, whose layout is recognised."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from soda_tta.data.catalogue import KNOWN, locate, spelled
from soda_tta.data.corrupted import Corrupted
from soda_tta.data.dataset import Dataset
from soda_tta.data.formats import cifar, imagenet, trees
from soda_tta.data.images import ArrayImages, check_size
from soda_tta.errors import ImageError

SPLITS = {"train": ("train", "training"), "test": ("test", "val", "validation", "valid")}
LAYOUTS = {
    "npz": "an .npz file of images and labels",
    "npy": "an .npy file of images",
    "csv": "a CSV of files and labels",
    "cifar-python": "the official CIFAR python batches",
    "cifar-binary": "the official CIFAR binary batches",
    "cifar-c": "one .npy a corruption, as CIFAR-10-C",
    "imagenet-c": "corruption/severity/class/, as ImageNet-C",
    "splits": "train/class/ and val/class/",
    "domains": "domain/class/",
    "classes": "class/",
    "folder": "a folder of images without labels",
}
STORED = ("cifar-c", "imagenet-c")  # layouts that hold corruptions already


@dataclass(frozen=True)
class Wanted:
    """What the caller asked for, beside the path."""

    split: str
    domain: str | None
    corruption: str | None
    severity: int
    size: tuple[int, int] | None
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
) -> Dataset:
    """Opens a data set by its name ("cifar10") or by its path, whatever its layout; images stay on disk until asked.

    `corruption` and `severity` choose from a set that holds corruptions, and are made on the fly for any other.
    `domain` chooses from domain/class folders. `size` resizes files. `classes` fixes how class names are numbered.
    A name of the catalogue goes before a folder of that name; write ./cifar10 for the folder.
    """
    if split not in SPLITS:
        raise ImageError(f"there is no split {split!r}; choose {' or '.join(SPLITS)}.")
    name = spelled(source) if isinstance(source, str) and os.sep not in source else None
    path = locate(name, split) if name else Path(source)
    if name in ("cifar10", "cifar100") and classes is None:
        classes = cifar.CIFAR10 if name == "cifar10" else cifar.CIFAR100
    layout = recognise(path)
    if domain is not None and layout != "domains":
        raise ImageError(f"{path} has no domains: it is {LAYOUTS[layout]}.")
    resized = None if size is None else check_size(size)
    wanted = Wanted(split, domain, corruption, severity, resized, classes, title=name)
    dataset = open_layout(path, layout, wanted)
    if wanted.size is not None and tuple(dataset.size) != wanted.size:
        raise ImageError(f"{path}: size= resizes files only; resize these arrays yourself.")
    if (
        corruption is None
        or layout in STORED
        or (layout == "npy" and cifar.is_corruption_file(path))
    ):
        return dataset
    return Corrupted(dataset, corruption, severity, seed, constants=constants, frost=frost)


def recognise(path: Path) -> str:
    """Which of LAYOUTS a path has, from names alone: nothing is decoded."""
    try:
        if path.is_dir():
            return recognise_folder(path)
        there = path.exists()
    except OSError as error:
        raise ImageError(f"{path} cannot be opened: {error.strerror}.") from error
    if path.is_symlink() and not there:
        raise ImageError(f"{path} is a link that leads nowhere or to itself.")
    if not there:
        raise ImageError(
            f"there is no data set and no path {str(path)!r}; known by name are {', '.join(KNOWN)}, "
            "or give a folder, a CSV, an .npy or an .npz file."
        )
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("npz", "npy", "csv"):
        raise ImageError(f"{path} is no data set; give a folder, a CSV, an .npy or an .npz file.")
    return kind


def recognise_folder(folder: Path) -> str:
    if cifar.is_cifar_c(folder):
        return "cifar-c"
    if (folder / "labels.csv").is_file():
        return "csv"
    if cifar.is_python(folder):
        return "cifar-python"
    if cifar.is_binary(folder):
        return "cifar-binary"
    if trees.holds_images(folder):
        return "folder"
    below = trees.subfolders(folder)
    if imagenet.corruption_folders(folder):
        return "imagenet-c"
    if below and {path.name for path in below} <= {
        name for names in SPLITS.values() for name in names
    }:
        return "splits"
    if any(trees.holds_images(path) for path in below):
        return "classes"
    if any(trees.holds_images(deep) for path in below for deep in trees.subfolders(path)):
        return "domains"
    return "folder"


def open_layout(path: Path, layout: str, wanted: Wanted) -> Dataset:
    title = wanted.title
    if layout == "npz":
        return cifar.arrays_of_npz(path, wanted.classes, title)
    if layout == "npy":
        if cifar.is_corruption_file(path):
            return cifar.cifar_c(path.parent, path.stem, wanted.severity, wanted.classes)
        return Dataset(ArrayImages(cifar.mapped(path), str(path)), title=title or path.stem)
    if layout == "csv":
        file = path / "labels.csv" if path.is_dir() else path
        return trees.files_of_csv(file, trees.reader(wanted.size), wanted.classes, title)
    if layout == "cifar-python":
        return cifar.official_python(path, wanted.split, title)
    if layout == "cifar-binary":
        return cifar.official_binary(path, wanted.split, title)
    if layout == "cifar-c":
        return cifar.cifar_c(path, wanted.corruption, wanted.severity, wanted.classes, title)
    if layout == "imagenet-c":
        return imagenet.imagenet_c(
            path, wanted.corruption, wanted.severity, wanted.size, wanted.classes, title
        )
    if layout == "splits":
        folder = split_folder(path, wanted.split)
        read = imagenet.tree_reader(folder, wanted.size)
        return trees.class_folders(
            folder, read, wanted.classes, f"{title or path.name} {wanted.split}"
        )
    if layout == "domains":
        return trees.domain_folders(
            path, wanted.domain, trees.reader(wanted.size), wanted.classes, title
        )
    if layout == "classes":
        return trees.class_folders(
            path, imagenet.tree_reader(path, wanted.size), wanted.classes, title
        )
    return trees.plain_folder(path, wanted.size)


def split_folder(path: Path, split: str) -> Path:
    for name in SPLITS[split]:
        if (path / name).is_dir():
            return path / name
    raise ImageError(f"{path} has no folder for {split} ({', '.join(SPLITS[split])}).")

"""Which layout a path has, recognised from names alone: nothing is decoded."""

from __future__ import annotations

from pathlib import Path

from soda_tta.data.catalogue import KNOWN
from soda_tta.data.files import SUFFIXES
from soda_tta.data.formats import cifar, imagenet, trees
from soda_tta.errors import ImageError

SPLITS = {"train": ("train", "training"), "test": ("test", "val", "validation", "valid")}
SPLIT_NAMES = {name for names in SPLITS.values() for name in names}
LAYOUTS = {
    "image": "one image file",
    "npz": "an .npz file of images and labels",
    "npy": "an .npy file of images",
    "csv": "a CSV of files and labels",
    "cifar-python": "the official CIFAR python batches",
    "cifar-binary": "the official CIFAR binary batches",
    "cifar-c": "one .npy file per corruption, as CIFAR-10-C",
    "imagenet-c": "corruption/severity/class/, as ImageNet-C",
    "splits": "train/class/ and val/class/",
    "domains": "domain/class/",
    "classes": "class/",
    "folder": "a folder of images without labels",
}
ACCEPTED = "a folder, an image, a .csv, an .npy or an .npz file"


def recognise(path: Path) -> str:
    """The layout of a path, one of `LAYOUTS`.

    Parameters
    ----------
    path : Path
        A file or a folder.
    """
    try:
        if path.is_dir():
            return recognise_folder(path)
        exists = path.exists()
    except OSError as error:
        raise ImageError(f"{path} cannot be opened: {error.strerror}.") from error
    if path.is_symlink() and not exists:
        raise ImageError(f"{path} is a link to nothing or to itself; remove it.")
    if not exists:
        raise ImageError(
            f"{path} does not exist; give {ACCEPTED}, or a data set by name ({', '.join(KNOWN)})."
        )
    suffix = path.suffix.lower()
    if suffix in (".npz", ".npy", ".csv"):
        return suffix.removeprefix(".")
    if suffix in SUFFIXES:
        return "image"
    raise ImageError(f"{path} is not a data set; give {ACCEPTED}.")


def recognise_folder(folder: Path) -> str:
    """The layout of a folder."""
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
    return recognise_tree(folder)


def recognise_tree(folder: Path) -> str:
    """The layout of a folder whose images lie in folders below."""
    children = trees.subfolders(folder)
    if imagenet.corruption_folders(folder):
        return "imagenet-c"
    if children and {path.name for path in children} <= SPLIT_NAMES:
        return "splits"
    if any(trees.holds_images(path) for path in children):
        return "classes"
    if any(trees.holds_images(below) for path in children for below in trees.subfolders(path)):
        return "domains"
    return "folder"


def split_folder(folder: Path, split: str) -> Path:
    """The folder of a split, whichever of its usual names it has."""
    for name in SPLITS[split]:
        if (folder / name).is_dir():
            return folder / name
    raise ImageError(f"{folder} has no folder for {split} ({', '.join(SPLITS[split])}).")

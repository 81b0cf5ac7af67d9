"""Folders of image files: one per class, one per domain, or one for all images."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from soda_tta.data.dataset import Dataset
from soda_tta.data.files import SUFFIXES, find_image_files, ignored_files, named_as_image
from soda_tta.data.lazy import FileImages
from soda_tta.data.reading import Reading
from soda_tta.errors import ImageError

Item = TypeVar("Item")


def subfolders(folder: Path) -> list[Path]:
    """The folders directly below, sorted; links are followed unless they loop."""
    folders = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            check_link(path)
        if path.is_dir() and not path.name.startswith("."):
            folders.append(path)
    return folders


def check_link(link: Path) -> None:
    """Fail when a link is broken, or points to itself or to a folder above it."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # a loop is a RuntimeError up to Python 3.12
        raise ImageError(f"{link} is a link to nothing or to itself; remove it.") from error
    if target.is_dir() and link.parent.resolve().is_relative_to(target):
        raise ImageError(f"{link} is a link back to {target}, a loop; remove it.")


def holds_images(folder: Path) -> bool:
    """Whether an image lies directly in a folder."""
    return any(named_as_image(path) and path.is_file() for path in folder.iterdir())


def images_in(folder: Path) -> list[Path]:
    """The images directly in a folder, sorted; fails for a broken link among them."""
    files = sorted(folder.iterdir())
    paths = [path for path in files if named_as_image(path)]
    for path in paths:
        if path.is_symlink():
            check_link(path)
    ignored = ignored_files(files)
    if ignored:
        warnings.warn(f"{folder}: ignored {ignored}.", stacklevel=2)
    return [path for path in paths if path.is_file()]


def pick(folder: Path, what: str, name: str | None, available: Mapping[str, Item]) -> Item:
    """The one of these corruptions, severities or domains; fails with the list of all."""
    if name is None:
        raise ImageError(f"{folder}: choose a {what}; it has {', '.join(available)}.")
    if name not in available:
        raise ImageError(f"{folder}: there is no {what} {name!r}; it has {', '.join(available)}.")
    return available[name]


def plain_folder(folder: Path, reading: Reading) -> Dataset:
    """Every image below a folder, without labels."""
    return Dataset(FileImages(find_image_files(folder), reading, folder), title=folder.name)


def class_folders(
    folder: Path, reading: Reading, classes: Sequence[str] | None = None, title: str | None = None
) -> Dataset:
    """`class/*.jpg`: classes are numbered in the order of `classes`, else alphabetically.

    Where all folders are named by numbers, those numbers are the labels, even with gaps.
    """
    folders = subfolders(folder)
    names = [path.name for path in folders]
    if not names:
        raise ImageError(f"{folder} holds no folder; one per class is needed.")
    order = list(classes) if classes is not None else names
    named = classes is not None and set(names) <= set(order)
    numbered = all(name.isdecimal() for name in names) and not named
    paths: list[Path] = []
    labels: list[int] = []
    for path in folders:
        if not numbered and path.name not in order:
            raise ImageError(f"{path} is not one of the {len(order)} classes specified.")
        images = images_in(path)
        if not images:
            raise ImageError(
                f"{path} holds no image ({', '.join(sorted(SUFFIXES))}); "
                "add images of this class or remove the folder."
            )
        label = int(path.name) if numbered else order.index(path.name)
        paths += images
        labels += [label] * len(images)
    files = FileImages(paths, reading, folder)
    return Dataset(
        files,
        [labels[position] for position in files.kept],
        classes if numbered else order,
        title or folder.name,
    )


def domain_folders(
    folder: Path,
    domain: str | None,
    reading: Reading,
    classes: Sequence[str] | None = None,
    title: str | None = None,
) -> Dataset:
    """`domain/class/*.jpg`: one domain; a class has the same number in all domains."""
    domains = {path.name: path for path in subfolders(folder)}
    chosen = pick(folder, "domain", domain, domains)
    all_classes = sorted({path.name for each in domains.values() for path in subfolders(each)})
    return class_folders(
        chosen, reading, classes or all_classes, f"{title or folder.name} {chosen.name}"
    )

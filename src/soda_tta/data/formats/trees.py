"""Folders of image files: one a class, one a domain, or all in one; and a CSV of files and labels."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from soda_tta.data.dataset import Dataset, Pictures
from soda_tta.data.files import SUFFIXES, find_image_files, named_as_image, read_image
from soda_tta.errors import ImageError
from soda_tta.types import Array

Reader = Callable[[Path], Array]


def reader(size: tuple[int, int] | None) -> Reader:
    return partial(read_image, size=size)


def subfolders(folder: Path) -> list[Path]:
    """The folders right below, sorted. Links are followed, but one that leads back up would never end."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            check_link(path)
        if path.is_dir() and not path.name.startswith("."):
            found.append(path)
    return found


def check_link(link: Path) -> None:
    """Fails when a link leads nowhere, to itself, or to a folder it lies in."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # a loop is a RuntimeError up to Python 3.12
        raise ImageError(f"{link} is a link that leads nowhere or to itself; remove it.") from error
    if target.is_dir() and link.parent.resolve().is_relative_to(target):
        raise ImageError(f"{link} is a link back to {target}, a loop; remove it.")


def is_image(path: Path) -> bool:
    return named_as_image(path) and path.is_file()


def holds_images(folder: Path) -> bool:
    return any(is_image(path) for path in folder.iterdir())


def images_in(folder: Path) -> list[Path]:
    """The images right below, sorted; a link among them must lead somewhere."""
    found = sorted(path for path in folder.iterdir() if named_as_image(path))
    for path in found:
        if path.is_symlink():
            check_link(path)
    return [path for path in found if path.is_file()]


def plain_folder(folder: Path, size: tuple[int, int] | None = None) -> Dataset:
    """Every image below a folder; no labels."""
    return Dataset(Pictures(find_image_files(folder), reader(size), folder), title=folder.name)


def class_folders(
    folder: Path, read: Reader, classes: Sequence[str] | None = None, title: str | None = None
) -> Dataset:
    """`class/*.jpg`: classes are numbered in the order of `classes`, else of their names.

    Folders that are all called by numbers keep them as labels, whichever of them are there.
    """
    folders = subfolders(folder)
    names = [path.name for path in folders]
    if not names:
        raise ImageError(f"{folder} holds no folder; one a class is needed.")
    order = list(classes) if classes is not None else names
    numbered = all(name.isdecimal() for name in names) and not (
        classes is not None and set(names) <= set(order)
    )
    paths: list[Path] = []
    labels: list[int] = []
    for path in folders:
        if not numbered and path.name not in order:
            raise ImageError(f"{path} is none of the {len(order)} classes that were given.")
        found = images_in(path)
        if not found:
            raise ImageError(
                f"{path} holds no image ({', '.join(sorted(SUFFIXES))}); fill the class or remove it."
            )
        paths += found
        labels += [int(path.name) if numbered else order.index(path.name)] * len(found)
    return Dataset(
        Pictures(paths, read, folder), labels, classes if numbered else order, title or folder.name
    )


def domain_folders(
    folder: Path,
    domain: str | None,
    read: Reader,
    classes: Sequence[str] | None = None,
    title: str | None = None,
) -> Dataset:
    """`domain/class/*.jpg`: one domain; a class has the same number in all domains."""
    domains = {path.name: path for path in subfolders(folder)}
    if domain not in domains:
        asked = "choose a domain" if domain is None else f"there is no domain {domain!r}"
        raise ImageError(f"{folder}: {asked}; it has {', '.join(domains)}.")
    everywhere = sorted({path.name for each in domains.values() for path in subfolders(each)})
    return class_folders(
        domains[domain], read, classes or everywhere, f"{title or folder.name} {domain}"
    )


def files_of_csv(
    file: Path, read: Reader, classes: Sequence[str] | None = None, title: str | None = None
) -> Dataset:
    """A CSV with the header `file,label`; files lie beside it or in its folder `images`.

    Labels are class numbers, or names, which are numbered in the order of `classes`, else of the alphabet.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            table = csv.DictReader(opened)
            if table.fieldnames is None or not {"file", "label"} <= set(table.fieldnames):
                raise ImageError(
                    f"{file} begins with {table.fieldnames}; its first line must be: file,label"
                )
            rows = [(table.line_num, row["file"], row["label"]) for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ImageError(f"{file} cannot be read as a CSV: {error}") from error
    if not rows:
        raise ImageError(f"{file} lists no file.")
    for line, name, label in rows:
        if not name or not label:
            raise ImageError(
                f"{file}, line {line}: a file and its label are needed; got {name!r}, {label!r}."
            )
    paths = [listed_file(file, line, name) for line, name, _ in rows]
    given = [label.strip() for _, _, label in rows]
    if classes is None and not all(label.isdecimal() for label in given):
        classes = sorted(set(given))
    if classes is not None and not all(label.isdecimal() for label in given):
        unknown = sorted(set(given) - set(classes))
        if unknown:
            raise ImageError(
                f"{file}: {unknown[0]!r} is none of the {len(classes)} classes that were given."
            )
        order = list(classes)
        numbers = [order.index(label) for label in given]
    else:
        numbers = [int(label) for label in given]
    return Dataset(Pictures(paths, read, file.parent), numbers, classes, title or file.parent.name)


def listed_file(file: Path, line: int, name: str) -> Path:
    for path in (file.parent / name, file.parent / "images" / name):
        if path.is_file():
            return path
    raise ImageError(
        f"{file}, line {line}: {name} lies neither beside it nor in its folder 'images'."
    )

"""Which images belong together, by what the user knows: a folder, a column, a tag or a name."""

from __future__ import annotations

import csv
import difflib
import re
import warnings
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from PIL import ExifTags, UnidentifiedImageError

from soda_tta.data.decoding import open_picture
from soda_tta.data.formats.tables import place_of
from soda_tta.data.images import Images
from soda_tta.data.sources import find_images
from soda_tta.errors import ImageError
from soda_tta.types import Array

RULES = "folder, csv:COLUMN, exif:TAG or name:REGEX"
UNKNOWN = "unknown"  # the group of the images that a rule says nothing about
# Characters of an EXIF time ("2026:11:18 09:30:12") that say its day, hour or minute.
TIME_LENGTHS = {"day": 10, "hour": 13, "minute": 16}

Key = str | None  # the name of an image's group; None if the rule says nothing about the image


def group_images(source: Any, rule: str) -> tuple[Array, list[str]]:
    """Number the groups of images that belong together, such as frames of one camera or scene.

    No pixels are decoded except those of the first file, which gives the size of the set.

    Parameters
    ----------
    source : object
        Image files in any form that `open_images` takes, or the set that it returned.
    rule : str
        "folder": the folder that an image lies in. "csv:COLUMN": a column of the CSV file that
        lists the images. "exif:TAG": a tag of the image files, such as exif:Model; a time can be
        cut, as in exif:DateTimeOriginal:hour (or day, minute). "name:REGEX": the first capture
        group of a regular expression that is searched in the name of the image, or the whole
        match if there is no capture group.

    Returns
    -------
    groups : array of int
        The number of each image's group.
    names : list of str
        The name of each group, in alphabetical order. Images about which the rule says nothing
        form one group, "unknown", and a warning counts them. That is the cautious choice: it can
        only lower the number of images that count as independent.

    Examples
    --------
    >>> group_images(["north/1.png", "north/2.png", "south/1.png"], "folder")  # doctest: +SKIP
    (array([0, 0, 1]), ['north', 'south'])
    """
    kind, _, argument = rule.partition(":")
    if kind not in KINDS or (kind == "folder") == bool(argument):
        raise ImageError(f"{rule!r} is not a valid rule for groups; use {RULES}.")
    images = find_images(source)
    if images.path(0) is None:
        raise ImageError(
            f"the rule {rule!r} needs image files, and these images have no names; "
            "in Python, pass one number per image."
        )
    keys = KINDS[kind](images, argument)
    missing = sum(key is None for key in keys)
    if missing == len(keys):
        raise ImageError(f"the rule {rule!r} matches none of the {len(keys):,} images.")
    if missing:
        warnings.warn(
            f"the rule {rule!r} says nothing about {missing:,} of {len(keys):,} images, such as "
            f"{images.name(keys.index(None))}; together they count as one group, '{UNKNOWN}'.",
            stacklevel=2,
        )
    named = [UNKNOWN if key is None else key for key in keys]
    names, groups = np.unique(named, return_inverse=True)
    if len(names) == 1 and len(keys) > 1:
        raise ImageError(
            f"the rule {rule!r} puts all {len(keys):,} images in one group, {str(names[0])!r}; "
            "use a rule that tells them apart, or none."
        )
    return groups.astype(np.int64), [str(name) for name in names]


def groups_from_rule(images: Images, rule: str | None) -> Array | None:
    """The group of each image by a rule of the command line; None if no rule was specified."""
    return None if rule is None else group_images(images, rule)[0]


def _by_folder(images: Images, _: str) -> list[Key]:
    return [str(PurePath(images.name(index)).parent) for index in range(len(images))]


def _by_column(images: Images, column: str) -> list[Key]:
    """The values of a column of the table; an empty cell says nothing."""
    if images.table is None:
        raise ImageError(
            f"the images are not listed in a CSV file, so there is no column {column!r}; "
            "open the CSV file itself, or use another rule."
        )
    values = _column(images.table, column)
    return [values.get(_file(images, index)) for index in range(len(images))]


def _column(table: Path, column: str) -> dict[Path, str]:
    """The value of a column for each file of a table; the table was read before."""
    with table.open(newline="", encoding="utf-8-sig") as opened:
        reader = csv.DictReader(opened)
        columns = list(reader.fieldnames or [])
        if column not in columns:
            raise ImageError(f"{table} has no column {column!r}; it has {', '.join(columns)}.")
        values: dict[Path, str] = {}
        for row in reader:
            path = place_of(table, row["file"])
            value = (row[column] or "").strip()
            if path and value and values.setdefault(path, value) != value:
                raise ImageError(
                    f"{table}, line {reader.line_num}: {row['file']} is listed with two values of "
                    f"{column!r}, {values[path]!r} and {value!r}; list it once."
                )
    return values


def _by_tag(images: Images, argument: str) -> list[Key]:
    """The values of an EXIF tag, from the headers of the files."""
    tag, colon, unit = argument.partition(":")
    numbers = {name: number for number, name in ExifTags.TAGS.items()}
    if tag not in numbers:
        similar = difflib.get_close_matches(tag, numbers, n=1) or ["Model"]
        remedy = f"use one such as {similar[0]}."
        raise ImageError(f"{tag!r} is not the name of an EXIF tag; {remedy}")
    if colon and unit not in TIME_LENGTHS:
        raise ImageError(f"exif:{argument} is not valid: a time is cut to day, hour or minute.")
    length = TIME_LENGTHS.get(unit)
    values = [_tag_value(_file(images, index), numbers[tag]) for index in range(len(images))]
    return [None if value is None else value[:length] for value in values]


def _tag_value(path: Path, number: int) -> Key:
    """One EXIF tag of a file as text; None if the file does not have it."""
    try:
        with open_picture(path) as image:
            # Pillow decodes a PNG to its end for a tag that is not in its header.
            if image.format == "PNG" and "exif" not in image.info:
                return None
            exif = image.getexif()
            value = exif.get(number, exif.get_ifd(ExifTags.IFD.Exif).get(number))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        return None  # decoding the pixels will report what is wrong with the file
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return None if value is None else str(value).strip("\0 ") or None


def _by_name(images: Images, expression: str) -> list[Key]:
    """What a regular expression captures in the name of each image."""
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise ImageError(f"{expression!r} is not a valid regular expression: {error}.") from error
    matches = [pattern.search(images.name(index)) for index in range(len(images))]
    captured = 1 if pattern.groups else 0
    return [None if match is None else match[captured] or None for match in matches]


def _file(images: Images, index: int) -> Path:
    path = images.path(index)
    assert path is not None
    return path


KINDS: dict[str, Callable[[Images, str], list[Key]]] = {
    "folder": _by_folder,
    "csv": _by_column,
    "exif": _by_tag,
    "name": _by_name,
}

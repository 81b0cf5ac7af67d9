"""A CSV file with the header `file,label`; files lie next to it or in its folder `images`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from soda_tta.data.dataset import Dataset
from soda_tta.data.lazy import FileImages
from soda_tta.data.reading import Reading
from soda_tta.errors import ImageError
from soda_tta.storage.spreadsheet import from_cell

Row = tuple[int, str, str]  # line in the file, name of an image file, label


def labelled_files(
    table: Path, reading: Reading, classes: Sequence[str] | None = None, title: str | None = None
) -> Dataset:
    """The files of a table with their labels.

    Labels are class numbers or class names; names are numbered in the order of `classes`, else
    alphabetically.
    """
    rows = read_rows(table, ("file", "label"))
    for line, name, label in rows:
        if not name or not label:
            raise ImageError(
                f"{table}, line {line}: a file and its label are needed; got {name!r}, {label!r}."
            )
    labels = [label.strip() for _, _, label in rows]
    if all(label.isdecimal() for label in labels):
        numbers = [int(label) for label in labels]
    else:
        classes = sorted(set(labels)) if classes is None else classes
        numbers = class_numbers(table, labels, classes)
    images = FileImages(paths_of(table, rows, reading), reading, table.parent, table)
    numbers = [numbers[position] for position in images.kept]
    return Dataset(images, numbers, classes, title or table.parent.name)


def listed_files(table: Path, reading: Reading) -> FileImages:
    """The files of a table in its order; labels, if it has any, are not read."""
    rows = read_rows(table, ("file",))
    return FileImages(paths_of(table, rows, reading), reading, table.parent, table)


def read_rows(table: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a table that has at least these columns."""
    try:
        with table.open(newline="", encoding="utf-8-sig") as opened:
            reader = csv.DictReader(opened)
            if reader.fieldnames is None or not set(columns) <= set(reader.fieldnames):
                raise ImageError(
                    f"{table} begins with {reader.fieldnames}; "
                    f"its first line must be: {','.join(columns)}"
                )
            rows = [
                (reader.line_num, from_cell(row["file"] or ""), from_cell(row.get("label") or ""))
                for row in reader
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ImageError(f"{table} cannot be read as a CSV: {error}") from error
    if not rows:
        raise ImageError(f"{table} lists no file.")
    return rows


def class_numbers(table: Path, labels: Sequence[str], classes: Sequence[str]) -> list[int]:
    """Class names as numbers; fails for a name that is not among the classes."""
    unknown = sorted(set(labels) - set(classes))
    if unknown:
        raise ImageError(
            f"{table}: {unknown[0]!r} is not one of the {len(classes)} classes specified."
        )
    order = list(classes)
    return [order.index(label) for label in labels]


def paths_of(table: Path, rows: Sequence[Row], reading: Reading) -> list[Path]:
    """Where the files lie: next to the table, or in its folder `images`."""
    if reading.on_bad_image == "skip":  # a file that is missing cannot be read either
        return [place_of(table, name) or table.parent / name for _, name, _ in rows]
    return [path_of(table, line, name) for line, name, _ in rows]


def path_of(table: Path, line: int, name: str) -> Path:
    """Where one file lies."""
    path = place_of(table, name)
    if path is None:
        raise ImageError(
            f"{table}, line {line}: {name} is neither next to the table nor in its folder 'images'."
        )
    return path


def place_of(table: Path, name: str) -> Path | None:
    """The same, or None if the file does not exist."""
    places = (table.parent / name, table.parent / "images" / name)
    return next((path for path in places if path.is_file()), None)

"""True classes, used for measuring only: from a file, a data set or an array.

Labels may cover all images or only some of them.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from soda_tta.data import load_dataset
from soda_tta.errors import ImageError
from soda_tta.storage.spreadsheet import from_cell
from soda_tta.types import Array

UNKNOWN = -1
CLASSES_REMEDY = (
    'Pass the names of the model\'s classes in its order, one per line: classes="names.txt".'
)
FILE_COLUMNS = ("file", "image", "name")
LABEL_COLUMNS = ("label", "class")


@dataclass(frozen=True)
class Labels:
    """True classes in the order of the images.

    Attributes
    ----------
    values : array of int, shape (images,)
        One class number per image; -1 where the class is unknown.
    classes : tuple of str, default=None
        The names of the classes, if they are known.
    """

    values: Array
    classes: tuple[str, ...] | None = None

    @property
    def known(self) -> Array:
        """Which images have a label."""
        mask: Array = self.values != UNKNOWN
        return mask


def read_labels(
    source: Any, names: Sequence[str], classes: Sequence[str] | None, class_count: int | None
) -> Labels:
    """Read labels in the order of a run's images.

    Parameters
    ----------
    source : array of int, path, or data set name
        Class numbers; an .npy file, an .npz file (its `labels`), a .txt file (one label per line)
        or a .csv file (`file,label`); or a data set that `load_dataset` opens. Labels with file
        names are matched by name and may cover only some images.
    names : sequence of str
        The names of the run's images, in order.
    classes : sequence of str or None
        The names of the model's classes in its order; needed if labels are names.
    class_count : int or None
        The number of the model's classes; None if it is not known yet.

    Examples
    --------
    >>> read_labels([0, 1, -1], ["a.png", "b.png", "c.png"], None, 2).known.tolist()
    [True, True, False]
    """
    if isinstance(source, str | os.PathLike):
        files, raw, classes = _read_path(Path(source), str(source), classes, class_count)
    else:
        files = None
        raw = list(np.asarray(source).tolist())
    if classes is not None:
        check_class_names(classes, class_count)
    numbers = _class_numbers(raw, classes)
    values = numbers if files is None else _match_names(files, numbers, names)
    if len(values) != len(names):
        raise ImageError(
            f"{len(values)} labels for {len(names)} images. "
            "Pass one label per image, or a .csv file with the columns file,label."
        )
    if not (values != UNKNOWN).any():
        raise ImageError(
            "none of the labels belongs to an image of this run. "
            "Check that these are the labels of these images."
        )
    _check_range(values, class_count)
    return Labels(values, None if classes is None else tuple(classes))


def _check_range(values: Array, class_count: int | None) -> None:
    """Refuse labels that are not one of the model's classes."""
    invalid = values.min() if values.min() < UNKNOWN else values.max()
    if invalid < UNKNOWN or (class_count is not None and invalid >= class_count):
        valid = "" if class_count is None else f", which are 0 to {class_count - 1}"
        raise ImageError(f"label {invalid} is not one of the model's classes{valid}.")


def read_classes(source: Any) -> tuple[str, ...]:
    """Read the names of the classes: a list, or a text file with one name per line.

    >>> read_classes(["cat", "dog"])
    ('cat', 'dog')
    """
    if not isinstance(source, str | os.PathLike):
        return tuple(str(name) for name in source)
    try:
        return tuple(Path(source).read_text(encoding="utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        message = f"{source} cannot be read as class names, one per line: {error}"
        raise ImageError(message) from error


def check_class_names(classes: Sequence[str], class_count: int | None) -> None:
    """Refuse a wrong number of names and repeated names: they would shift all later classes."""
    if class_count is not None and len(classes) != class_count:
        raise ImageError(
            f"there are {len(classes)} class names, but the model has {class_count} classes. "
            + CLASSES_REMEDY
        )
    repeated = next((name for place, name in enumerate(classes) if name in classes[:place]), None)
    if repeated is not None:
        raise ImageError(f"the class name {repeated!r} occurs twice. {CLASSES_REMEDY}")


def _read_path(
    path: Path, text: str, classes: Sequence[str] | None, class_count: int | None
) -> tuple[list[str] | None, list[Any], Sequence[str] | None]:
    """File names (None if labels are in the order of the images), labels, and class names."""
    try:
        content = _read_label_file(path)
        listed = path / "labels.csv"
        if content is None and listed.is_file():
            # the data set below reads this list; names in it have no order of their own
            _class_numbers(_read_csv(listed)[1], classes)
    except ImageError:
        raise
    except Exception as error:  # a damaged file can fail in many ways
        message = f"{path} cannot be read as labels: {type(error).__name__}: {error}"
        raise ImageError(message) from error
    if content is not None:
        return (*content, classes)
    dataset = load_dataset(text, classes=classes)
    if dataset.labels is None:
        raise ImageError(
            f"{text} has no labels. "
            "Pass class folders, or a .csv, .txt, .npy or .npz file of labels."
        )
    if classes is None and dataset.classes is not None:
        _check_class_folders(dataset.classes, class_count)
    files = [dataset.name(index) for index in range(len(dataset))]
    # arrays name their images by position
    by_position = all(name == str(index) for index, name in enumerate(files))
    return None if by_position else files, dataset.labels.tolist(), classes or dataset.classes


def _read_label_file(path: Path) -> tuple[list[str] | None, list[Any]] | None:
    """File names and labels of a label file; None if `path` is not one."""
    suffix = path.suffix.lower() if path.is_file() else ""
    if suffix == ".npy":
        return None, np.load(path, allow_pickle=False).tolist()
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return None, file["labels"].tolist()
    if suffix == ".txt":
        return None, path.read_text(encoding="utf-8-sig").splitlines()
    if suffix == ".csv":
        return _read_csv(path)
    return None


def _read_csv(path: Path) -> tuple[list[str] | None, list[Any]]:
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        table = csv.DictReader(file)
        columns = table.fieldnames or []
        label_column = next((name for name in LABEL_COLUMNS if name in columns), None)
        if label_column is None:
            header = ", ".join(columns) or "empty"
            raise ImageError(f"the header of {path} is {header}. It must be: file,label")
        file_column = next((name for name in FILE_COLUMNS if name in columns), None)
        rows = list(table)
    files = None if file_column is None else [from_cell(row[file_column] or "") for row in rows]
    return files, [from_cell(row[label_column] or "") for row in rows]


def _class_numbers(raw: list[Any], classes: Sequence[str] | None) -> Array:
    """Class numbers as they are, names by their position; an empty label is unknown."""
    words = [str(value).strip() for value in raw]
    numbers = _whole_numbers(words)
    if numbers is not None:
        return numbers
    names = sorted({word for word in words if word})
    if classes is None:
        raise ImageError(f"the labels are names, such as {names[0]!r}. {CLASSES_REMEDY}")
    positions = {name: position for position, name in enumerate(classes)}
    for name in names:
        if name not in positions:
            raise ImageError(f"label {name!r} is not one of the {len(classes)} class names.")
    return np.array([positions[word] if word else UNKNOWN for word in words], np.int64)


def _check_class_folders(folders: Sequence[str], class_count: int | None) -> None:
    """Class folders are numbered in the order of their names, which needs a folder per class."""
    if class_count is not None and len(folders) != class_count:
        raise ImageError(
            f"there are {len(folders)} class folders, but the model has {class_count} classes. "
            + CLASSES_REMEDY
        )


def _whole_numbers(words: list[str]) -> Array | None:
    """The labels as whole numbers; None if they are not.

    pandas and numpy also write whole numbers as 3.0 or 3.000e+00, and missing ones as nan.
    """
    try:
        values = np.array([float(word or "nan") for word in words])
    except ValueError:
        return None
    known = ~np.isnan(values)
    if not (values[known] == np.rint(values[known])).all() or np.isinf(values).any():
        return None
    return np.where(known, values, UNKNOWN).astype(np.int64)


def _match_names(files: list[str], numbers: Array, names: Sequence[str]) -> Array:
    """Labels by file name, or by its last part if that identifies an image."""
    label_of: dict[str, int] = {}
    for file, label in zip(files, numbers.tolist(), strict=True):
        if label_of.setdefault(file, label) != label:
            raise ImageError(f"{file} has two labels, {label_of[file]} and {label}. Keep one.")
    if not label_of.keys() & set(names):
        by_last_part = {PurePath(file).name: label for file, label in label_of.items()}
        last_parts = [PurePath(name).name for name in names]
        for part in last_parts:
            if part in by_last_part and last_parts.count(part) > 1:
                raise ImageError(
                    f"{part} is the name of several images. "
                    f"Write the folder of each, too, as in {names[0]}."
                )
        if len(by_last_part) == len(label_of):
            label_of = by_last_part
            names = last_parts
    unmatched = len(label_of.keys() - set(names))
    if 0 < unmatched < len(label_of):
        message = (
            f"{unmatched:,} of {len(label_of):,} labels do not belong to an image of this run."
        )
        warnings.warn(message, stacklevel=2)
    return np.array([label_of.get(name, UNKNOWN) for name in names], np.int64)

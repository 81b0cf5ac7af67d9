"""The true classes, for measuring only: from a file, a data set or an array; of all images or of some of them."""

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
from soda_tta.types import Array

UNKNOWN = -1
NAMED = "give the model's class names in its order (--classes FILE, one a line)."
FILE_COLUMNS, LABEL_COLUMNS = ("file", "image", "name"), ("label", "class")


@dataclass(frozen=True)
class Labels:
    """`values`: one class number an image, UNKNOWN where nobody has looked; `classes`: their names, if known."""

    values: Array
    classes: tuple[str, ...] | None = None

    @property
    def known(self) -> Array:
        mask: Array = self.values != UNKNOWN
        return mask


def read_labels(
    source: Any, names: Sequence[str], classes: Sequence[str] | None, of_the_model: int | None
) -> Labels:
    """Labels in the order of the run's images; `of_the_model` classes, None if that is not known yet.

    `source`: numbers; an .npy, an .npz (its `labels`), a .txt (one a line) or a .csv (`file,label`) file; or a data
    set that `load_dataset` opens. Where files are named they are matched by name, and may be some of them only.
    """
    if isinstance(source, str | os.PathLike):
        files, given, classes = _from_path(Path(source), str(source), classes, of_the_model)
    else:
        files, given = None, list(np.asarray(source).tolist())
    if classes is not None:
        check_names(classes, of_the_model)
    numbers, classes = _as_numbers(given, classes)
    values = _in_order(files, numbers, names) if files is not None else numbers
    if len(values) != len(names):
        raise ImageError(
            f"{len(values)} labels for {len(names)} images; give one an image, or a .csv of file,label."
        )
    if not (values != UNKNOWN).any():
        raise ImageError(
            "no label belongs to an image of this run; are these the labels of other images?"
        )
    worst = values.min() if values.min() < UNKNOWN else values.max()
    if worst < UNKNOWN or (of_the_model is not None and worst >= of_the_model):
        run = "" if of_the_model is None else f", which run from 0 to {of_the_model - 1}"
        raise ImageError(f"label {worst} is none of the model's classes{run}.")
    return Labels(values, None if classes is None else tuple(classes))


def read_classes(source: Any) -> tuple[str, ...]:
    """Names of the classes: a list, or a text file with one a line."""
    if not isinstance(source, str | os.PathLike):
        return tuple(str(name) for name in source)
    try:
        return tuple(Path(source).read_text(encoding="utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise ImageError(f"{source} cannot be read as class names, one a line: {error}") from error


def check_names(classes: Sequence[str], of_the_model: int | None) -> None:
    """A name too many or twice would move every class behind it."""
    if of_the_model is not None and len(classes) != of_the_model:
        raise ImageError(
            f"there are {len(classes)} class names, and the model has {of_the_model} classes; {NAMED}"
        )
    twice = next((name for place, name in enumerate(classes) if name in classes[:place]), None)
    if twice is not None:
        raise ImageError(f"the class name {twice!r} stands twice; {NAMED}")


def _from_path(
    path: Path, text: str, classes: Sequence[str] | None, of_the_model: int | None
) -> tuple[list[str] | None, list[Any], Sequence[str] | None]:
    kind = path.suffix.lower() if path.is_file() else ""
    try:
        if kind == ".npy":
            return None, np.load(path, allow_pickle=False).tolist(), classes
        if kind == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return None, file["labels"].tolist(), classes
        if kind == ".txt":
            return None, path.read_text(encoding="utf-8-sig").splitlines(), classes
        if kind == ".csv":
            return (*_from_csv(path), classes)
        if (beside := path / "labels.csv").is_file():
            _as_numbers(
                _from_csv(beside)[1], classes
            )  # a folder with a list is opened below; its names have no order
    except ImageError:
        raise
    except Exception as error:  # a damaged file fails in many ways
        raise ImageError(
            f"{path} cannot be read as labels: {type(error).__name__}: {error}"
        ) from error
    dataset = load_dataset(text, classes=classes)
    if dataset.labels is None:
        raise ImageError(
            f"{text} has no labels; give class folders, or a .csv, .txt, .npy or .npz file of labels."
        )
    if classes is None and dataset.classes is not None:
        check_all_named(dataset.classes, of_the_model)
    files = [dataset.name(index) for index in range(len(dataset))]
    numbered = all(
        name == str(index) for index, name in enumerate(files)
    )  # arrays name their images by position
    return None if numbered else files, dataset.labels.tolist(), classes or dataset.classes


def _from_csv(path: Path) -> tuple[list[str] | None, list[Any]]:
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        table = csv.DictReader(file)
        columns = table.fieldnames or []
        label = next((name for name in LABEL_COLUMNS if name in columns), None)
        if label is None:
            raise ImageError(
                f"{path} begins with {', '.join(columns) or 'nothing'}; it must begin with: file,label"
            )
        named = next((name for name in FILE_COLUMNS if name in columns), None)
        rows = list(table)
    return None if named is None else [row[named] for row in rows], [row[label] for row in rows]


def _as_numbers(
    given: list[Any], classes: Sequence[str] | None
) -> tuple[Array, Sequence[str] | None]:
    """Class numbers as they are; names by their place among the classes; an empty place is not known."""
    words = [str(value).strip() for value in given]
    if (numbers := _whole_numbers(words)) is not None:
        return numbers, classes
    found = sorted({word for word in words if word})
    if classes is None:
        raise ImageError(f"the labels are names, such as {found[0]!r}; {NAMED}")
    unknown = [word for word in found if word not in set(classes)]
    if unknown:
        raise ImageError(f"label {unknown[0]!r} is none of the {len(classes)} class names.")
    places = {name: place for place, name in enumerate(classes)}
    return np.array([places[word] if word else UNKNOWN for word in words], np.int64), classes


def check_all_named(found: Sequence[str], of_the_model: int | None) -> None:
    """Class folders are numbered in the order of their names, as is usual; it can be the model's if none is missing."""
    if of_the_model is not None and len(found) != of_the_model:
        raise ImageError(
            f"there are {len(found)} class folders, and the model has {of_the_model} classes; {NAMED}"
        )


def _whole_numbers(words: list[str]) -> Array | None:
    """The numbers, if all are whole; also as pandas and numpy write them: 3.0, 3.000e+00, and nan where none is."""
    try:
        values = np.array([float(word or "nan") for word in words])
    except ValueError:
        return None
    known = ~np.isnan(values)
    if not (values[known] == np.rint(values[known])).all() or np.isinf(values).any():
        return None
    return np.where(known, values, UNKNOWN).astype(np.int64)


def _in_order(files: list[str], numbers: Array, names: Sequence[str]) -> Array:
    """Labels by the name of their file; by its last part where that is enough to tell them apart."""
    whole: dict[str, int] = {}
    for file, label in zip(files, numbers.tolist(), strict=True):
        if whole.setdefault(file, label) != label:
            raise ImageError(f"{file} has two labels, {whole[file]} and {label}; an image has one.")
    if not whole.keys() & set(names):
        short = {PurePath(file).name: label for file, label in whole.items()}
        last = [PurePath(name).name for name in names]
        shared = next((name for name in last if name in short and last.count(name) > 1), None)
        if shared is not None:
            raise ImageError(
                f"{shared} is the name of several images; write its folder, too, as in {names[0]}."
            )
        if len(short) == len(whole):
            whole, names = short, last
    if 0 < (strange := len(whole.keys() - set(names))) < len(whole):
        warnings.warn(
            f"{strange:,} of {len(whole):,} labels belong to no image of this run.", stacklevel=2
        )
    return np.array([whole.get(name, UNKNOWN) for name in names], np.int64)

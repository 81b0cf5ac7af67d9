"""Tables that people open in a spreadsheet, which must not take a file's name for a formula."""

from __future__ import annotations

import csv
from typing import Any, TextIO

import numpy as np

from soda_tta.types import Array

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
ROUTE_COLUMNS = ("condition", "distance")
HERE = "./"  # the same file, and no formula


def as_cell(name: str) -> str:
    """The name as it is written to a cell: `./=x.png` for `=x.png`, the same file.

    >>> as_cell("=HYPERLINK(1).png"), as_cell("night/1.png"), as_cell("-1.5")
    ('./=HYPERLINK(1).png', 'night/1.png', '-1.5')
    """
    return f"{HERE}{name}" if name.startswith(FORMULA) and not _is_number(name) else name


def from_cell(cell: str) -> str:
    """The name in a cell that `as_cell` wrote; any other text is returned as it is.

    >>> from_cell("./=x.png"), from_cell("./x.png")
    ('=x.png', './x.png')
    """
    name = cell.removeprefix(HERE)
    return name if as_cell(name) == cell else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def write_predictions(
    file: TextIO, names: list[str], before: Array, after: Array | None, routes: Any = None
) -> None:
    """Write one row per image; what a stopped run did not answer stays empty.

    With `routes` (see `conditions.Routes`) two columns say which condition each image belongs to.
    """
    writer = csv.writer(file)
    head = ["image", "before", "before_confidence", "after", "after_confidence", "changed"]
    writer.writerow(head if routes is None else [*head, *ROUTE_COLUMNS])
    for index, name in enumerate(names):
        first = best_class(before[index])
        second = None if after is None else best_class(after[index])
        row: list[Any] = [as_cell(name), *(first or ())]
        if first is not None and second is not None:
            row += [*second, int(first[0] != second[0])]
        if routes is not None:
            row += [""] * (len(head) - len(row)) + route_cells(routes, index)
        writer.writerow(row)


def route_cells(routes: Any, index: int) -> list[str]:
    """The condition of an image, empty if it is unlike all of them, and its distance."""
    condition = str(int(routes.conditions[index])) if routes.familiar[index] else ""
    return [condition, f"{routes.distances[index]:.3f}"]


def best_class(probabilities: Array) -> tuple[int, str] | None:
    """The most likely class and its probability; None for a row that was never answered."""
    if np.isnan(probabilities[0]):
        return None
    best = int(probabilities.argmax())
    return best, f"{probabilities[best]:.6f}"


def write_to_label(file: TextIO, names: list[str]) -> None:
    """Write a list of images whose labels a person may fill in."""
    writer = csv.writer(file)
    writer.writerow(["file", "label"])
    writer.writerows([as_cell(name), ""] for name in names)

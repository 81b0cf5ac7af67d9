"""Read stored benchmark cells. The scripts read a cell's result only through these functions."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean
from typing import Any

from soda_tta.bench import Cell, CellResult, Store
from soda_tta.bench.cell import CLEAN
from soda_tta.types import Array

Result = CellResult
Entry = tuple[Cell, Result]  # a cell and what it measured


def accuracy_before(result: Result) -> float:
    """Accuracy of the unadapted images, in percent."""
    return result.before


def accuracy_after(result: Result) -> float:
    """Accuracy of the adapted images, in percent."""
    return result.after


def accuracy_gain(result: Result) -> float:
    """Percentage points gained by adaptation."""
    return result.after - result.before


def queries_per_image(result: Result) -> float:
    """Queries of all purposes, divided by the number of images."""
    return result.queries_per_image


def run_seconds(result: Result) -> float:
    """Wall-clock seconds of the run."""
    return result.seconds


def epoch_losses(result: Result) -> list[float]:
    """Mean loss of each epoch; empty for cells that are older than this record."""
    return result.losses


def curve_points(result: Result) -> list[dict[str, float]]:
    """Accuracy, loss and queries measured during the run, at the learning rate that was chosen."""
    return result.chosen_curve()


def adaptor_text(result: Result) -> str:
    """What the learned adaptor does to an image, in words."""
    return result.adaptor or ""


def verdict_facts(result: Result) -> dict[str, Any] | None:
    """The verdict of soda-e; None if no move improved the objective."""
    return result.verdict


def correct_images(cell: Cell, result: Result) -> Array | None:
    """Which images were classified correctly; None for cells that are older than this record."""
    return result.correct_images(cell.images)


def stored_results(store: Store) -> dict[str, Result]:
    """Every result of a store by the key of its cell."""
    return {cell.key: result for cell, result in store}


def column_of(cell: Cell) -> str:
    """The table column a cell belongs to: its corruption, or its data set if that is clean."""
    return cell.data if cell.corruption == CLEAN else cell.corruption


def columns_of(entries: Iterable[Entry]) -> list[str]:
    """The columns these cells fill, in order."""
    return list(dict.fromkeys(column_of(cell) for cell, _ in entries))


def mean_of_columns(entries: list[Entry], columns: list[str], measure: Any) -> float:
    """The mean over columns of the mean over the cells of each column."""
    return mean(
        mean(measure(result) for cell, result in entries if column_of(cell) == column)
        for column in columns
    )

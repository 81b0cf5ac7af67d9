"""Building blocks of the paper's tables: a row, a claim about two rows, an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NOT_IN_PAPER = "not in the paper"  # the `paper` of an experiment that only this project runs


@dataclass(frozen=True)
class Row:
    """One line of a table: the cells of a method with these settings."""

    name: str
    method: str
    settings: dict[str, Any] = field(default_factory=dict)  # a tuple means: one of these values
    paper: float | None = None  # the accuracy the paper prints, in percent
    model: str | None = None  # if the grid has several
    images: int | None = None
    order: str | None = None
    lowest_loss: bool = False  # keep one cell per corruption: the one with the lowest final loss
    averaged: bool = False  # average over everything else that the grid varies


@dataclass(frozen=True)
class Claim:
    """A statement about two rows: the first is better, or (`equal`) they do not differ."""

    sentence: str
    first: str
    second: str
    equal: bool = False
    additional: bool = False  # our own statement inside an experiment of the paper


@dataclass(frozen=True)
class Experiment:
    """A benchmark grid, its rows and what is claimed about them."""

    grid: str
    title: str
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    paper: str = "CIFAR-10-C"  # the data that the paper's accuracies refer to
    by_corruption: bool = False  # also show the full table
    gain: bool = False  # compare gains, because the rows start from different accuracies


def vary(method: str, setting: str, paper_values: dict[Any, float | None]) -> tuple[Row, ...]:
    """One row per value of a setting, with the accuracy the paper prints for it."""
    return tuple(
        Row(f"{method}, {setting} {value}", method, {setting: value}, paper)
        for value, paper in paper_values.items()
    )

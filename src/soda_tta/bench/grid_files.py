"""Grids from TOML files."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.data.corruptions import SEVERITIES
from soda_tta.errors import RecipeError
from soda_tta.recipes import Procedure, find_method

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def grid_from_toml(path: Path) -> list[Cell]:
    """Every combination of what each [[cells]] table lists: a value, also one inside `numbers`, may be a list.

    [[cells]]
    method = ["soda", "deployed"]
    corruption = ["fog", "contrast"]
    images = 200
    numbers = { epochs = 10, lr = [0.01, 0.03] }

    Where a table names several methods, its numbers are for the recipes that learn; a table with one method gives
    them to it, whatever it is.
    """
    if not path.exists():
        raise RecipeError(f"there is no file {path}.")
    try:
        tables = tomllib.loads(path.read_text())["cells"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise RecipeError(f"{path} is no grid: it needs [[cells]] tables ({type(error).__name__}: {error}).") from error
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RecipeError(f"{path} is no grid: it needs [[cells]] tables.")
    cells: dict[str, Cell] = {}  # a method that takes no numbers would appear once for each combination of them
    for table in tables:
        choices = table.pop("numbers", {})
        if not isinstance(choices, dict):
            raise RecipeError(f"{path}: numbers is a table, such as numbers = {{ epochs = 10, lr = [0.01, 0.03] }}.")
        several = isinstance(table.get("method"), list)
        for facts, numbers in itertools.product(combinations(table), list(combinations(choices))):
            taken = numbers if not several or learns(facts.get("method")) else {}
            cell = Cell.from_facts({**facts, "numbers": taken})
            if cell.corruption == CLEAN and cell.severity in SEVERITIES:
                cell = replace(cell, severity=5)  # has none: one cell, however many severities are listed
            cells[cell.key] = cell
    if not cells:
        raise RecipeError(f"{path} names no cell: each list in a [[cells]] table needs at least one value.")
    return list(cells.values())


def combinations(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    lists = [value if isinstance(value, list) else [value] for value in table.values()]
    return (dict(zip(table, values, strict=True)) for values in itertools.product(*lists))


def learns(method: Any) -> bool:
    try:
        known = find_method(str(method))
    except RecipeError:
        return False  # the cell says so
    return not isinstance(known, Procedure) and known.epochs > 0

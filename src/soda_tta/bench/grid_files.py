"""Grids from TOML files."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.data.corruptions import SEVERITIES
from soda_tta.errors import MethodError
from soda_tta.methods import Method, find_method
from soda_tta.methods.loop_method import EXCHANGEABLE
from soda_tta.settings import ALIASES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def grid_from_toml(path: Path) -> list[Cell]:
    """Every combination of what each [[cells]] table lists: a value, also one inside `settings`, may be a list.

    [[cells]]
    method = ["soda", "deployed"]
    corruption = ["fog", "contrast"]
    images = 200
    settings = { epochs = 10, lr = [0.01, 0.03] }

    Where a table names several methods, each that learns takes those of the settings it has; deployed, lame, bn and
    their like, which make no epochs, stay as they are. A table with one method gives it all of them, whatever it is.
    """
    if not path.exists():
        raise MethodError(f"there is no file {path}.")
    try:
        tables = tomllib.loads(path.read_text())["cells"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise MethodError(
            f"{path} is no grid: it needs [[cells]] tables ({type(error).__name__}: {error})."
        ) from error
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise MethodError(f"{path} is no grid: it needs [[cells]] tables.")
    cells: dict[
        str, Cell
    ] = {}  # a method that takes no settings would appear once for each combination of them
    for table in tables:
        choices = table.pop("settings", {})
        if not isinstance(choices, dict):
            raise MethodError(
                f"{path}: settings is a table, such as settings = {{ epochs = 10, lr = [0.01, 0.03] }}."
            )
        takers = shared_out(choices, table.get("method"))
        for facts, settings in itertools.product(combinations(table), list(combinations(choices))):
            taken = takers.get(facts["method"]) or set() if takers else set(settings)
            own = {name: value for name, value in settings.items() if name in taken}
            cell = Cell.from_facts({**facts, "settings": own})
            if cell.corruption == CLEAN and cell.severity in SEVERITIES:
                cell = replace(
                    cell, severity=5
                )  # has none: one cell, however many severities are listed
            cells[cell.key] = cell
    if not cells:
        raise MethodError(
            f"{path} names no cell: each list in a [[cells]] table needs at least one value."
        )
    return list(cells.values())


def combinations(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    lists = [value if isinstance(value, list) else [value] for value in table.values()]
    return (dict(zip(table, values, strict=True)) for values in itertools.product(*lists))


def shared_out(choices: dict[str, Any], methods: Any) -> dict[str, set[str] | None]:
    """Which of a table's settings each of its methods takes; nothing where there is only one, which takes them all."""
    if (
        not isinstance(methods, list)
        or not all(isinstance(method, str) for method in methods)
        or len(set(methods)) < 2
    ):
        return {}
    takers = {method: known_settings(method, choices) for method in methods}
    for name in choices:
        if not any(name in (taken or ()) for taken in takers.values()):
            raise MethodError(
                f"none of {', '.join(takers)} takes a number {name!r} here; 'soda-tta methods NAME' lists them."
            )
    for method, taken in takers.items():
        if taken is not None and (
            absent := ", ".join(name for name in choices if name not in taken)
        ):
            warnings.warn(f"{method} has no number {absent} and is run without it.", stacklevel=3)
    return takers


def known_settings(name: str, choices: dict[str, Any]) -> set[str] | None:
    """Those of the choices that a method has; None for our yardsticks, which make no epochs and stay as they are."""
    try:
        method = find_method(name)
    except MethodError:
        return set(choices)  # the cell says what is wrong
    if method.epochs <= 1 and ":" not in name:
        return None
    known = {*method.settings, *settings_of_parts(method, choices)}
    return {choice for choice in choices if ALIASES.get(choice, choice) in known}


def settings_of_parts(method: Method, choices: dict[str, Any]) -> set[str]:
    """Numbers that a method has with another part in place of its own: those of evolution, say."""
    found: set[str] = set()
    for part in {*EXCHANGEABLE, "step"} & choices.keys() & method.settings.keys():
        for value in choices[part] if isinstance(choices[part], list) else [choices[part]]:
            with suppress(MethodError):  # the cell says what is wrong
                found |= method.but(**{part: value}).settings.keys()
    return found

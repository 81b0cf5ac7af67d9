"""Grids from TOML files."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell
from soda_tta.errors import MethodError
from soda_tta.methods import Method, find_method
from soda_tta.methods.loop_method import EXCHANGEABLE
from soda_tta.settings import ALIASES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = dict[str, Any]


def grid_from_toml(path: Path) -> list[Cell]:
    """Read a grid: every combination of the values that each [[cells]] table lists.

    A value may be a list, also inside `settings`:

        [[cells]]
        method = ["soda", "deployed"]
        corruption = ["fog", "contrast"]
        images = 200
        settings = { epochs = 10, lr = [0.01, 0.03] }

    If a table names several methods, each one that learns gets those settings that it has. Methods
    without epochs (deployed, lame, bn ...) stay as they are. If a table names one method, it gets
    all settings.
    """
    cells: dict[str, Cell] = {}  # by key: a method without settings occurs once per combination
    for table in read_tables(path):
        choices = table.pop("settings", {})
        if not isinstance(choices, dict):
            raise MethodError(
                f"{path}: settings must be a table, "
                "such as settings = { epochs = 10, lr = [0.01, 0.03] }."
            )
        accepted = distribute(choices, table.get("method"))
        for facts, settings in itertools.product(combinations(table), list(combinations(choices))):
            names = accepted.get(facts["method"], set()) if accepted else set(settings)
            own = {name: value for name, value in settings.items() if name in names}
            cell = Cell.from_facts({**facts, "settings": own})
            cells[cell.key] = cell
    if not cells:
        raise MethodError(
            f"{path} has no cells: each list in a [[cells]] table needs at least one value."
        )
    return list(cells.values())


def read_tables(path: Path) -> list[Table]:
    """The [[cells]] tables of a file."""
    if not path.exists():
        raise MethodError(f"there is no file {path}.")
    try:
        tables = tomllib.loads(path.read_text())["cells"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise MethodError(
            f"{path} is not a grid: it needs [[cells]] tables ({type(error).__name__}: {error})."
        ) from error
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise MethodError(f"{path} is not a grid: it needs [[cells]] tables.")
    return tables


def combinations(table: Table) -> Iterator[Table]:
    """One table for every combination of the listed values.

    >>> list(combinations({"images": 50, "seed": [0, 1]}))
    [{'images': 50, 'seed': 0}, {'images': 50, 'seed': 1}]
    """
    return (
        dict(zip(table, values, strict=True))
        for values in itertools.product(*map(as_list, table.values()))
    )


def as_list(value: Any) -> list[Any]:
    """A list of choices; a single value is the only choice."""
    return value if isinstance(value, list) else [value]


def distribute(choices: Table, methods: Any) -> dict[str, set[str]]:
    """Which of a table's settings each of its methods gets.

    Returns nothing for a single method, which gets all of them. Warns about a method that learns
    and lacks a setting; refuses a setting that no method has.
    """
    if not isinstance(methods, list) or not all(isinstance(method, str) for method in methods):
        return {}
    if len(set(methods)) < 2:
        return {}
    accepted = {method: accepted_settings(method, choices) for method in methods}
    for name in choices:
        if not any(name in names for names in accepted.values()):
            raise MethodError(
                f"none of {', '.join(accepted)} has a setting {name!r} here; "
                "'soda-tta methods NAME' lists them."
            )
    for method, names in accepted.items():
        absent = ", ".join(name for name in choices if name not in names)
        if absent and not is_yardstick(method):
            warnings.warn(f"{method} has no setting {absent} and runs without it.", stacklevel=3)
    return accepted


def is_yardstick(name: str) -> bool:
    """Whether a method is built in and has no epochs; a table of several leaves it unchanged."""
    try:
        return find_method(name).epochs <= 1 and ":" not in name
    except MethodError:
        return False  # the cell raises the error


def accepted_settings(name: str, choices: Table) -> set[str]:
    """Those of the settings that a method has; none for our methods without epochs."""
    if is_yardstick(name):
        return set()
    try:
        method = find_method(name)
    except MethodError:
        return set(choices)  # the cell raises the error
    names = {*method.settings, *settings_of_parts(method, choices)}
    return {choice for choice in choices if ALIASES.get(choice, choice) in names}


def settings_of_parts(method: Method, choices: Table) -> set[str]:
    """Settings that a method has with another part, such as those of search="evolution"."""
    names: set[str] = set()
    for part in {*EXCHANGEABLE, "step"} & choices.keys() & method.settings.keys():
        for value in as_list(choices[part]):
            with suppress(MethodError):  # the cell raises the error
                names |= method.but(**{part: value}).settings.keys()
    return names

"""Which column of a table a cell belongs to, and what its name and the protocol line say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from soda_tta.bench.cell import CLEAN, ORDERS, Cell, short_name
from soda_tta.bench.result import Entry
from soda_tta.errors import SodaError
from soda_tta.methods import all_methods

DISTINGUISHING = ("data", "model", "severity", "images", "order", "budget")
# These settings depend on the size of an experiment. The protocol line states them, and a column's
# name does so only if cells of its method differ in them.
SCALING = ("epochs", "finetune_epochs", "lr")


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Sort entries by method, as `soda-tta methods` lists them, and then by settings.

    The user's own methods come last. A store has the order in which its cells ended.
    """
    ranks = {name: rank for rank, name in enumerate(all_methods())}

    def rank(entry: Entry) -> tuple[Any, ...]:
        cell, _ = entry
        return (
            ranks.get(cell.method, len(ranks)),
            cell.method,
            sorted(map(sortable, settings(cell))),
        )

    return sorted(entries, key=rank)


def settings(cell: Cell) -> list[tuple[str, Any]]:
    """The settings of a cell under their short names, sorted by name."""
    return sorted((short_name(name), value) for name, value in cell.settings.items())


def sortable(setting: tuple[str, Any]) -> tuple[str, bool, Any]:
    """A setting that compares with any other: numbers come before text."""
    name, value = setting
    is_number = isinstance(value, int | float)
    return name, not is_number, value if is_number else str(value)


def distinct(entries: Iterable[Entry]) -> list[Entry]:
    """Each experiment once, with its curve if one was measured.

    Merged stores may hold an experiment twice: with and without a curve, or with other settings
    spelled out.
    """
    listed = list(entries)
    cells = same_spelling([cell for cell, _ in listed])
    found: dict[str, Entry] = {}
    for cell, (_, result) in zip(cells, listed, strict=True):
        experiment = identity(cell)
        if experiment not in found or (result.curve and not found[experiment][1].curve):
            found[experiment] = (cell, result)
    return list(found.values())


def identity(cell: Cell) -> str:
    """The experiment of a cell, or its plain content if its method is not importable."""
    try:
        return cell.experiment
    except SodaError:
        return replace(cell, curve=0).key


def same_spelling(cells: Sequence[Cell]) -> list[Cell]:
    """The cells, with the default settings dropped where only some of a column's cells state them.

    An ablation states the value it varies even where it is the default, and its table shows it.
    """
    spellings: dict[str, set[str]] = {}
    columns = [identity(replace(cell, corruption=CLEAN, seed=0)) for cell in cells]
    for column, cell in zip(columns, cells, strict=True):
        spellings.setdefault(column, set()).add(str(settings(cell)))
    return [
        cell if len(spellings[column]) == 1 else replace(cell, settings=cell.changes)
        for column, cell in zip(columns, cells, strict=True)
    ]


def differing_facts(cells: Iterable[Cell]) -> list[str]:
    """The facts in which cells differ, apart from method, settings, corruption and seed.

    >>> differing_facts([Cell(method="soda", images=50), Cell(method="bn", images=100)])
    ['images']
    """
    listed = list(cells)
    corrupted = [cell for cell in listed if cell.corruption != CLEAN]
    return [
        name
        for name in DISTINGUISHING
        if len({str(getattr(c, name)) for c in (corrupted if name == "severity" else listed)}) > 1
    ]


def differing_scaling(cells: Sequence[Cell], method: str) -> set[str]:
    """The scaling settings in which the cells of a method differ."""
    own = [cell for cell in cells if cell.method == method]
    return {name for name in SCALING if len({str(cell.settings.get(name)) for cell in own}) > 1}


def domains_are_rows(cells: Sequence[Cell]) -> bool:
    """Whether the rows of a table are data sets, because nothing is corrupted."""
    return "data" in differing_facts(cells) and all(cell.corruption == CLEAN for cell in cells)


def column_names(cells: Sequence[Cell], leave_out: Sequence[str] = ()) -> list[str]:
    """The name of the column of every cell.

    It holds the method, its settings, and the facts in which the cells differ.

    Parameters
    ----------
    cells : all cells of a table.
    leave_out : facts that stand elsewhere, for example on an axis (default none).

    Examples
    --------
    >>> column_names([Cell(method="soda", settings={"q": q}) for q in (5, 10)])
    ['soda (q=5)', 'soda (q=10)']
    """
    rows = ("data",) if domains_are_rows(cells) else ()
    facts = [name for name in differing_facts(cells) if name not in (*rows, *leave_out)]
    hidden = {
        method: set(SCALING) - differing_scaling(cells, method)
        for method in {cell.method for cell in cells}
    }
    names = []
    for cell in same_spelling(cells):
        changed = [
            f"{name}={value}" for name, value in settings(cell) if name not in hidden[cell.method]
        ]
        changed += [stated(name, getattr(cell, name)) for name in facts]
        names.append(f"{cell.method} ({', '.join(changed)})" if changed else cell.method)
    return names


def stated(fact: str, value: Any) -> str:
    """One fact of a column's name."""
    return "no budget" if fact == "budget" and value is None else f"{fact}={value}"


def protocol_of(entry: Entry, leave_out: set[str]) -> list[str]:
    """The facts of a cell in words, except those that stand elsewhere.

    The initial network of a local model (dine, beta) decides how it ends. It is therefore stated
    even where the cell does not choose it.
    """
    cell, result = entry
    words = {
        "data": cell.data,
        "model": cell.model,
        "severity": f"severity {cell.severity}",
        "images": f"{cell.images:,} images",
    }
    if cell.order != ORDERS[0]:
        words["order"] = f"in the order of their {cell.order}"
    if cell.budget is not None:
        words["budget"] = f"at most {cell.budget:g} queries per image"
    words |= {name: f"{name} {cell.settings[name]}" for name in SCALING if name in cell.settings}
    target = result.card.get("settings", {}).get("target")
    if target and "target" not in cell.settings:
        words["target"] = f"target {target}"
    return [fact for name, fact in words.items() if name not in leave_out]


def protocol_line(facts: dict[str, list[str]]) -> str:
    """The facts of several columns in one line: first the shared ones, then those of some.

    >>> protocol_line({"bn": ["500 images"], "soda": ["500 images", "lr 0.03"]})
    '500 images; lr 0.03 (soda)'
    """
    first = next(iter(facts.values()), [])
    shared = [fact for fact in first if all(fact in own for own in facts.values())]
    others: dict[str, list[str]] = {}
    for name, own in facts.items():
        others.setdefault(", ".join(fact for fact in own if fact not in shared), []).append(name)
    rest = [f"{own} ({', '.join(names)})" for own, names in others.items() if own]
    return "; ".join(filter(None, [", ".join(shared), *rest]))

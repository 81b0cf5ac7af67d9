"""What has been run already, in this store or another, and is not run again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell
from soda_tta.bench.store import Store
from soda_tta.box import load_box
from soda_tta.errors import RunError, SodaError
from soda_tta.methods import code_of

Reporter = Callable[[Cell, dict[str, Any]], None]


def missing_of(cells: Sequence[Cell], store: Store, reuse: Sequence[Store] = ()) -> list[Cell]:
    """The cells that neither the store nor, under whatever name, one to reuse has."""
    for cell in cells:
        cell.check()
    refuse_others(cells, store)
    known = finished([store, *reuse], own_models(cells))
    return [
        cell for cell in cells if cell not in store and (cell.experiment, cell.curve) not in known
    ]


def take_finished(
    cells: Sequence[Cell], store: Store, reuse: Sequence[Store], report: Reporter | None
) -> None:
    """Copy into the store what has been run elsewhere, with the adaptors that are kept."""
    known = finished([store, *reuse], own_models(cells))
    for cell in cells:
        if cell not in store and (place := known.get((cell.experiment, cell.curve))):
            other, same = place
            result = store.take(cell, other, same, {} if cell.curve else {"curve": []})
            if report:
                report(cell, result)


def finished(
    stores: Sequence[Store], models: Collection[str]
) -> dict[tuple[str, int], tuple[Store, Cell]]:
    """Where each experiment has been run, of the users' models on these only.

    A run that was watched also answers for one that need not be.
    """
    known = {}
    for store in stores:
        for cell, result in store:
            if cell.of_own_model and cell.model not in models:
                continue
            with suppress(SodaError):  # of a method or a number that this version has not
                if of_this_model(cell, result) and of_this_code(cell, result):
                    known.update(
                        {(cell.experiment, curve): (store, cell) for curve in {0, cell.curve}}
                    )
    return known


def refuse_others(cells: Sequence[Cell], store: Store) -> None:
    """A file keeps its name when another model, or other code, is put in its place; old results are not of that one."""
    models, named = own_models(cells), {cell.method for cell in cells}
    for cell, result in store:
        if cell.model in models and not of_this_model(cell, result):
            raise RunError(
                f"{store.path} holds results of another model that was {cell.model} then; give another folder (--out), "
                f"with --reuse {store.folder} for the results of the others."
            )
        if cell.method in named and not of_this_code(cell, result):
            raise RunError(
                f"{store.path} holds results of {cell.method} as it was before it was changed; give another folder "
                f"(--out), with --reuse {store.folder} for the results of the others."
            )


def own_models(cells: Sequence[Cell]) -> set[str]:
    return {cell.model for cell in cells if cell.of_own_model}


def of_this_model(cell: Cell, result: dict[str, Any]) -> bool:
    """Whether a result is of the file that is there now."""
    return not cell.of_own_model or result["card"]["box"]["fingerprint"] == fingerprint(cell.model)


def of_this_code(cell: Cell, result: dict[str, Any]) -> bool:
    """Whether a result is of the user's own method as it is now; not known of stores older than this question."""
    return result.get("code") in (None, code_of(cell.method))


def fingerprint(model: str) -> str:
    return _fingerprint(model, Path(model).stat().st_mtime_ns)


@functools.cache
def _fingerprint(model: str, written: int) -> str:
    del written  # read again when the file has been
    return load_box(model, threads=1).fingerprint()

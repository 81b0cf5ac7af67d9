"""Which cells have been run already, in this store or in another one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from soda_tta.bench.cell import Cell
from soda_tta.bench.result import CellResult
from soda_tta.bench.store import Store
from soda_tta.box import load_box
from soda_tta.errors import RunError, SodaError
from soda_tta.methods import code_of

Reporter = Callable[[Cell, CellResult], None]


def missing_cells(cells: Sequence[Cell], store: Store, reuse: Sequence[Store] = ()) -> list[Cell]:
    """The cells that must be run: neither the store nor a store to reuse has their experiment.

    Parameters
    ----------
    cells : the cells of a grid; each is checked first.
    store : where the results go.
    reuse : further stores whose results may be copied (default none).
    """
    for cell in cells:
        cell.check()
    check_unchanged(cells, store)
    finished = finished_experiments([store, *reuse], model_files(cells))
    return [
        cell
        for cell in cells
        if cell not in store and (cell.experiment, cell.curve) not in finished
    ]


def copy_finished(
    cells: Sequence[Cell], store: Store, reuse: Sequence[Store], report: Reporter | None
) -> None:
    """Copy into the store the results and adaptors of cells that were run elsewhere."""
    finished = finished_experiments([store, *reuse], model_files(cells))
    for cell in cells:
        if cell in store or (cell.experiment, cell.curve) not in finished:
            continue
        other, source = finished[cell.experiment, cell.curve]
        result = store.copy_from(other, source, cell)
        if report:
            report(cell, result)


def finished_experiments(
    stores: Sequence[Store], models: Collection[str]
) -> dict[tuple[str, int], tuple[Store, Cell]]:
    """Where each experiment was run, by its content and its interval of curve points.

    A run with a curve also serves as a run without one. Of the users' model files, only those in
    `models` count: the others need not exist any more.
    """
    places = {}
    for store in stores:
        for cell, result in store:
            if cell.uses_model_file and cell.model not in models:
                continue
            with suppress(SodaError):  # a method or a setting that this version does not have
                if is_same_model(cell, result) and is_same_code(cell, result):
                    for curve in {0, cell.curve}:
                        places[cell.experiment, curve] = (store, cell)
    return places


def check_unchanged(cells: Sequence[Cell], store: Store) -> None:
    """Refuse a store with results of a model file or a user method that has been replaced since."""
    models = model_files(cells)
    methods = {cell.method for cell in cells}
    remedy = f"write to another folder, and reuse {store.folder} for the results of the others."
    for cell, result in store:
        if cell.model in models and not is_same_model(cell, result):
            raise RunError(
                f"{store.path} holds results of another model named {cell.model}; {remedy}"
            )
        if cell.method in methods and not is_same_code(cell, result):
            raise RunError(
                f"{store.path} holds results of {cell.method} before its code changed; {remedy}"
            )


def model_files(cells: Sequence[Cell]) -> set[str]:
    """The models that are files of the user's."""
    return {cell.model for cell in cells if cell.uses_model_file}


def is_same_model(cell: Cell, result: CellResult) -> bool:
    """Whether the result comes from the model file as it is now."""
    return not cell.uses_model_file or result.card["box"]["fingerprint"] == fingerprint(cell.model)


def is_same_code(cell: Cell, result: CellResult) -> bool:
    """Whether the result comes from the user's method as it is now."""
    return result.code in (None, code_of(cell.method))


def fingerprint(model: str) -> str:
    """The fingerprint of a model file."""
    return _fingerprint(model, Path(model).stat().st_mtime_ns)


@functools.cache
def _fingerprint(model: str, modified: int) -> str:
    """Cached by the time of the last change, so that a replaced file is read again."""
    del modified
    return load_box(model, threads=1).fingerprint()

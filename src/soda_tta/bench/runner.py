"""Run the cells of a grid that the store has not got yet."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell, run_cell
from soda_tta.bench.store import Store
from soda_tta.errors import RecipeError

Reporter = Callable[[Cell, dict[str, Any]], None]


def run_grid(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    report: Reporter | None = None,
    reuse: Sequence[Store] = (),
) -> int:
    """Run what is missing, `jobs` processes of one thread each; returns how many cells were run.

    A killed grid is started again with the same call: finished cells are kept, unfinished ones continue. Experiments
    that a store to `reuse` has, under whatever name, are copied and not run.
    """
    for cell in cells:
        cell.check()
    with store.alone():
        take_finished(cells, store, reuse, report)
        unique = {cell.key: cell for cell in cells if cell not in store}
        working = store.folder / "working"
        for cell, result in _results(list(unique.values()), working, jobs):
            store.add(cell, result)
            store.keep_adaptor(cell, working / cell.key / "adaptor.safetensors")
            shutil.rmtree(working / cell.key, ignore_errors=True)
            (working / cell.key).with_suffix(".curve").unlink(missing_ok=True)
            if report:
                report(cell, result)
    return len(unique)


def missing_of(cells: Sequence[Cell], store: Store, reuse: Sequence[Store] = ()) -> list[Cell]:
    """The cells that neither the store nor, under whatever name, one to reuse has."""
    known = finished([store, *reuse])
    return [cell for cell in cells if cell not in store and (cell.experiment, cell.curve) not in known]


def finished(stores: Sequence[Store]) -> dict[tuple[str, int], tuple[Store, Cell]]:
    """Where each experiment has been run. A run that was watched also answers for one that need not be."""
    known = {}
    for store in stores:
        for cell, _ in store:
            with suppress(RecipeError):  # of a method or a number that this version has not
                known.update({(cell.experiment, curve): (store, cell) for curve in {0, cell.curve}})
    return known


def take_finished(cells: Sequence[Cell], store: Store, reuse: Sequence[Store], report: Reporter | None) -> None:
    """Copy into the store what has been run elsewhere, with the adaptors that are kept."""
    known = finished([store, *reuse])
    for cell in cells:
        if cell not in store and (place := known.get((cell.experiment, cell.curve))):
            other, same = place
            result = other.results[same.key]["result"]
            store.add(cell, result := result if cell.curve else {**result, "curve": []})
            if other.adaptor_path(same).exists():
                store.adaptor_path(cell).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(other.adaptor_path(same), store.adaptor_path(cell))
            if report:
                report(cell, result)


def _results(cells: list[Cell], working: Path, jobs: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    os.environ["OMP_NUM_THREADS"] = "1"  # two processes with two threads each would destroy one another
    others = set(active_children())
    with ProcessPoolExecutor(
        max(1, jobs), mp_context=get_context("spawn"), initializer=_die_with, initargs=(os.getpid(),)
    ) as pool:
        waiting = iter(cells)
        running: dict[Future[dict[str, Any]], Cell] = {}
        try:
            while True:
                # no more than the workers can begin at once: what waits in the pool would still be run after Ctrl-C
                for cell in itertools.islice(waiting, max(1, jobs) - len(running)):
                    running[pool.submit(_work, cell, str(working / cell.key))] = cell
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BaseException:
            for worker in set(active_children()) - others:
                worker.terminate()  # its cell goes on from its checkpoint another time
            raise


def _die_with(parent: int) -> None:
    """A worker whose parent was killed would wait for work for ever; it ends itself instead."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(cell: Cell, working: str) -> dict[str, Any]:
    import warnings

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return run_cell(cell, Path(working))

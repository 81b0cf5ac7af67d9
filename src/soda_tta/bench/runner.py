"""Run the cells of a grid that the store has not got yet."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell, run_cell
from soda_tta.bench.store import Store
from soda_tta.box import load_box
from soda_tta.errors import RecipeError, RunError

Reporter = Callable[[Cell, dict[str, Any]], None]
SHOWN = 10  # failures told one by one


def run_grid(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    report: Reporter | None = None,
    complain: Callable[[str], None] | None = None,
    reuse: Sequence[Store] = (),
) -> int:
    """Run what is missing, `jobs` processes of one thread each; returns how many cells were run.

    A killed grid is started again with the same call: finished cells are kept, unfinished ones continue. Experiments
    that a store to `reuse` has, under whatever name, are copied and not run. A cell that fails does not keep the others
    from being run; `complain` hears of it at once, and in the end the failures are told together.
    """
    for cell in cells:
        cell.check()
    refuse_other_models(cells, store)
    failed: list[str] = []
    with store.alone():
        take_finished(cells, store, reuse, report)
        unique = {cell.key: cell for cell in cells if cell not in store}
        working = store.folder / "working"
        for cell, result in _results(list(unique.values()), working, jobs):
            if isinstance(result, Exception):
                failed.append(f"{cell.title}: {type(result).__name__}: {result}")
                if complain:
                    complain(failed[-1])
                continue
            store.add(cell, result)
            store.keep_adaptor(cell, working / cell.key / "adaptor.safetensors")
            shutil.rmtree(working / cell.key, ignore_errors=True)
            (working / cell.key).with_suffix(".curve").unlink(missing_ok=True)
            if report:
                report(cell, result)
    if failed:
        raise CellsFailed(failed, len(unique))
    return len(unique)


class CellsFailed(RunError):
    """Some cells of a grid failed; the others are in the store."""

    def __init__(self, failed: Sequence[str], of: int) -> None:
        self.failed = list(failed)
        told = [f"{len(failed)} of {of} cells failed; the others are in the store. Run the same command to try again."]
        told += [f"  {line}" for line in failed[:SHOWN]]
        told += [f"  and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
        super().__init__("\n".join(told))


def refuse_other_models(cells: Sequence[Cell], store: Store) -> None:
    """A file keeps its name when another model is put in its place, and the old results are not of that one."""
    named = {cell.model for cell in cells if cell.of_own_model}
    for cell, result in store:
        if cell.model in named and not of_this_model(cell, result):
            raise RunError(
                f"{store.path} holds results of another model that was {cell.model} then; give another folder (--out)."
            )


def of_this_model(cell: Cell, result: dict[str, Any]) -> bool:
    """Whether a result is of the file that is there now."""
    return not cell.of_own_model or result["card"]["box"]["fingerprint"] == fingerprint(cell.model)


def fingerprint(model: str) -> str:
    return _fingerprint(model, Path(model).stat().st_mtime_ns)


@functools.cache
def _fingerprint(model: str, written: int) -> str:
    del written  # read again when the file has been
    return load_box(model, threads=1).fingerprint()


def missing_of(cells: Sequence[Cell], store: Store, reuse: Sequence[Store] = ()) -> list[Cell]:
    """The cells that neither the store nor, under whatever name, one to reuse has."""
    refuse_other_models(cells, store)
    known = finished([store, *reuse])
    return [cell for cell in cells if cell not in store and (cell.experiment, cell.curve) not in known]


def finished(stores: Sequence[Store]) -> dict[tuple[str, int], tuple[Store, Cell]]:
    """Where each experiment has been run. A run that was watched also answers for one that need not be."""
    known = {}
    for store in stores:
        for cell, result in store:
            with suppress(RecipeError):  # of a method or a number that this version has not, or of a file that is gone
                cell.check()
                if not of_this_model(cell, result):
                    continue
                known.update({(cell.experiment, curve): (store, cell) for curve in {0, cell.curve}})
    return known


def take_finished(cells: Sequence[Cell], store: Store, reuse: Sequence[Store], report: Reporter | None) -> None:
    """Copy into the store what has been run elsewhere, with the adaptors that are kept."""
    known = finished([store, *reuse])
    for cell in cells:
        if cell not in store and (place := known.get((cell.experiment, cell.curve))):
            other, same = place
            result = store.take(cell, other, same, {} if cell.curve else {"curve": []})
            if report:
                report(cell, result)


def _results(cells: list[Cell], working: Path, jobs: int) -> Iterator[tuple[Cell, dict[str, Any] | Exception]]:
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
                    yield running.pop(future), _outcome(future)
        except BaseException:
            for worker in set(active_children()) - others:
                worker.terminate()  # its cell goes on from its checkpoint another time
            raise


def _outcome(future: Future[dict[str, Any]]) -> dict[str, Any] | Exception:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise RunError(
            "a worker was killed, perhaps for want of memory; finished cells are kept. Run the same command to go on, "
            "with fewer --jobs."
        ) from error
    except Exception as error:
        return error


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
    warnings.simplefilter("ignore")  # what a user should know is among the result's notices
    return run_cell(cell, Path(working))

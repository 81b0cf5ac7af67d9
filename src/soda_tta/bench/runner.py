"""Run the cells of a grid that the store has not got yet."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell, run_cell
from soda_tta.bench.store import Store

Reporter = Callable[[Cell, dict[str, Any]], None]


def run_grid(cells: Sequence[Cell], store: Store, *, jobs: int = 1, report: Reporter | None = None) -> int:
    """Run what is missing, `jobs` processes of one thread each; returns how many cells were run.

    A killed grid is started again with the same call: finished cells are kept, unfinished ones continue.
    """
    for cell in cells:
        cell.check()
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


def _results(cells: list[Cell], working: Path, jobs: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    os.environ["OMP_NUM_THREADS"] = "1"  # two processes with two threads each would destroy one another
    with ProcessPoolExecutor(
        max(1, jobs), mp_context=get_context("spawn"), initializer=_die_with, initargs=(os.getpid(),)
    ) as pool:
        futures = {pool.submit(_work, cell, str(working / cell.key)): cell for cell in cells}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
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

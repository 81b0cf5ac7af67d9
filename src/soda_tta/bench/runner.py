"""Run the cells of a grid that the store has not got yet."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell
from soda_tta.bench.finished import Reporter, refuse_others, take_finished
from soda_tta.bench.measurement import run_cell
from soda_tta.bench.presence import what_is_absent
from soda_tta.bench.store import Store
from soda_tta.errors import RunError

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
    refuse_others(cells, store)
    failed: list[str] = []
    with store.alone():
        take_finished(cells, store, reuse, report)
        unique = {cell.key: cell for cell in cells if cell not in store}

        def fail(cell: Cell, why: str) -> None:
            failed.append(f"{cell.title}: {why}")
            if complain:
                complain(failed[-1])

        absent = what_is_absent(list(unique.values()))
        for key, why in absent.items():
            fail(unique[key], why)
        working = store.folder / "working"
        for cell, result in _results(
            [c for c in unique.values() if c.key not in absent], working, jobs
        ):
            if isinstance(result, Failed):
                fail(cell, result.why)
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
        others = "; the others are in the store" if len(failed) < of else ""
        told = [f"{len(failed)} of {of} cells failed{others}. Run the same command to try again."]
        told += [f"  {line}" for line in failed[:SHOWN]]
        told += [f"  and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
        super().__init__("\n".join(told))


@dataclass(frozen=True)
class Failed:
    """What went wrong with a cell, in words: not every exception survives the way between two processes."""

    why: str


def _results(
    cells: list[Cell], working: Path, jobs: int
) -> Iterator[tuple[Cell, dict[str, Any] | Failed]]:
    os.environ["OMP_NUM_THREADS"] = (
        "1"  # two processes with two threads each would destroy one another
    )
    others = set(active_children())
    with ProcessPoolExecutor(
        max(1, jobs),
        mp_context=get_context("spawn"),
        initializer=_die_with,
        initargs=(os.getpid(),),
    ) as pool:
        waiting = iter(cells)
        running: dict[Future[dict[str, Any] | Failed], Cell] = {}
        try:
            while True:
                # no more than the workers can begin at once: what waits in the pool would still be run after Ctrl-C
                for cell in itertools.islice(waiting, max(1, jobs) - len(running)):
                    running[pool.submit(_work, cell, str(working / cell.key))] = cell
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool as error:
            fewer = " with fewer --jobs" if jobs > 1 else ""
            raise RunError(
                "a worker was killed, perhaps for want of memory; finished cells are kept. Run the same command again"
                f"{fewer} to go on."
            ) from error
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


def _work(cell: Cell, working: str) -> dict[str, Any] | Failed:
    import warnings

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # what a user should know is among the result's notices
    try:
        return run_cell(cell, Path(working))
    except (Exception, SystemExit) as error:
        return Failed(f"{type(error).__name__}: {error}")

"""Run the cells of a grid that the store does not have yet."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path

from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import curve_file, run_cell
from soda_tta.bench.requirements import missing_requirements
from soda_tta.bench.result import CellResult
from soda_tta.bench.reuse import Reporter, check_unchanged, copy_finished
from soda_tta.bench.store import Store
from soda_tta.errors import RunError

SHOWN = 10  # failures that the final message lists


def run_grid(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    report: Reporter | None = None,
    report_failure: Callable[[str], None] | None = None,
    reuse: Sequence[Store] = (),
) -> int:
    """Run the missing cells and return how many there were.

    After a crash, the same call continues: finished cells are kept and unfinished ones resume. A
    cell that fails does not stop the others; `CellsFailed` lists the failures at the end.

    Parameters
    ----------
    cells : what to run; each is checked before the first query.
    store : where the results go.
    jobs : number of processes, with one thread each (default 1).
    report : called with each finished cell and its result (default: not called).
    report_failure : called with a message as soon as a cell fails (default: not called).
    reuse : stores whose results of the same experiments are copied instead of run (default none).
    """
    for cell in cells:
        cell.check()
    check_unchanged(cells, store)
    failures: list[str] = []

    def fail(cell: Cell, reason: str) -> None:
        failures.append(f"{cell.title}: {reason}")
        if report_failure:
            report_failure(failures[-1])

    with store.locked():
        copy_finished(cells, store, reuse, report)
        missing = {cell.key: cell for cell in cells if cell not in store}
        unmet = missing_requirements(list(missing.values()))
        for key, reason in unmet.items():
            fail(missing[key], reason)
        working = store.folder / "working"
        runnable = [cell for key, cell in missing.items() if key not in unmet]
        for cell, result in _results(runnable, working, jobs):
            if isinstance(result, Failure):
                fail(cell, result.reason)
                continue
            store.add(cell, result)
            store.keep_adaptor(cell, working / cell.key / "adaptor.safetensors")
            shutil.rmtree(working / cell.key, ignore_errors=True)
            curve_file(working / cell.key).unlink(missing_ok=True)
            if report:
                report(cell, result)
    if failures:
        raise CellsFailed(failures, len(missing))
    return len(missing)


class CellsFailed(RunError):
    """Some cells of a grid failed; the others are in the store.

    Parameters
    ----------
    failures : one message per failed cell, also available as an attribute.
    total : number of cells that were to be run.
    """

    def __init__(self, failures: Sequence[str], total: int) -> None:
        self.failures = list(failures)
        others = "; the others are in the store" if len(failures) < total else ""
        lines = [
            f"{len(failures)} of {total} cells failed{others}. Run the same command to try again.",
            *(f"  {failure}" for failure in failures[:SHOWN]),
        ]
        if len(failures) > SHOWN:
            lines.append(f"  and {len(failures) - SHOWN} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Failure:
    """Why a cell failed, as text: not every exception can be sent between processes."""

    reason: str


def _results(
    cells: list[Cell], working: Path, jobs: int
) -> Iterator[tuple[Cell, CellResult | Failure]]:
    """Run the cells in worker processes and yield each as it ends."""
    os.environ["OMP_NUM_THREADS"] = "1"  # parallel processes with many threads slow each other down
    other_children = set(active_children())
    with ProcessPoolExecutor(
        max(1, jobs),
        mp_context=get_context("spawn"),
        initializer=_exit_with_parent,
    ) as pool:
        waiting = iter(cells)
        running: dict[Future[CellResult | Failure], Cell] = {}
        try:
            while True:
                # Submit no more than the workers can start: what waits in the pool would still be
                # run after Ctrl-C.
                for cell in itertools.islice(waiting, max(1, jobs) - len(running)):
                    running[pool.submit(_work, cell, str(working / cell.key))] = cell
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool as error:
            fewer = " with fewer jobs" if jobs > 1 else ""
            raise RunError(
                "a worker was killed, perhaps for lack of memory; finished cells are kept. "
                f"Run the same command again{fewer} to continue."
            ) from error
        except BaseException:
            for worker in set(active_children()) - other_children:
                worker.terminate()  # its cell resumes from its checkpoint in the next run
            raise


def _exit_with_parent() -> None:
    """End the worker when its parent was killed; otherwise it would wait for work forever."""

    def watch() -> None:
        parent = parent_process()
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(cell: Cell, working: str) -> CellResult | Failure:
    """Run one cell in a worker."""
    import warnings

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the result's notices hold what a user should know
    try:
        return run_cell(cell, Path(working))
    except (Exception, SystemExit) as error:
        return Failure(f"{type(error).__name__}: {error}")

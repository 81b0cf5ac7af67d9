"""Run the cells of a grid that the store does not have yet."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import curve_file, run_cell
from soda_tta.bench.requirements import missing_requirements
from soda_tta.bench.result import CellResult
from soda_tta.bench.reuse import Reporter, check_unchanged, copy_finished
from soda_tta.bench.store import Store
from soda_tta.errors import RunError
from soda_tta.scale.backend import Backend, Failure
from soda_tta.scale.processes import Processes
from soda_tta.storage.atomic import make_folder
from soda_tta.storage.run_folder import ADAPTOR

SHOWN = 10  # failures that the final message lists


def run_grid(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    backend: Backend | None = None,
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
    jobs : number of processes on this machine, with one thread each (default 1).
    backend : where the cells run, from `find_backend` (default: in `jobs` processes).
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
        working = (store.folder / "working").absolute()
        runnable = [cell for key, cell in missing.items() if key not in unmet]
        with working_folder(working):
            engine = backend or Processes(jobs)
            # Closed at the first error, even if something else holds it: workers need their folder.
            with closing(engine.run(partial(run_in_worker, str(working)), runnable)) as results:
                for cell, finished in results:
                    if isinstance(finished, Failure):
                        fail(cell, str(finished))
                        continue
                    store.add(cell, finished.result)
                    store.keep_adaptor(cell, finished.adaptor)
                    shutil.rmtree(working / cell.key, ignore_errors=True)
                    curve_file(working / cell.key).unlink(missing_ok=True)
                    if report:
                        report(cell, finished.result)
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
class Finished:
    """A cell that was run: its result, and the file of its adaptor if it has one."""

    result: CellResult
    adaptor: bytes | None


@contextmanager
def working_folder(working: Path) -> Iterator[None]:
    """A folder for unfinished cells, removed at the end if none is left in it."""
    make_folder(working)
    try:
        yield
    finally:
        with suppress(OSError):
            working.rmdir()


def run_in_worker(working: str, cell: Cell) -> Finished:
    """Run one cell in a worker.

    Parameters
    ----------
    working : folder for the state of unfinished cells. On a machine that does not have it, a cell
        cannot be resumed.
    cell : what to run.
    """
    import warnings

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the result's notices hold what a user should know
    if Path(working).is_dir():
        return run_in_folder(cell, Path(working))
    with tempfile.TemporaryDirectory() as folder:
        return run_in_folder(cell, Path(folder))


def run_in_folder(cell: Cell, working: Path) -> Finished:
    """Run one cell and collect what the store keeps of it."""
    result = run_cell(cell, working / cell.key)
    adaptor = working / cell.key / ADAPTOR
    return Finished(result, adaptor.read_bytes() if adaptor.exists() else None)

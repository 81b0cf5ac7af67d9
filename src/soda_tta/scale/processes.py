"""Tasks in processes of this machine, with one thread each."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from typing import Any

from soda_tta.errors import RunError
from soda_tta.scale.backend import ATTEMPTS, Backend, Task, run_on_worker, versions


class Processes(Backend):
    """Runs tasks in new processes. If one is killed, its task runs again in another.

    Parameters
    ----------
    jobs : int
        Number of processes.
    """

    shares_cores = True

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def describe(self) -> str:
        return f"in {self.jobs} processes of this machine"

    def run(
        self, function: Callable[[Task], Any], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Any]]:
        os.environ["OMP_NUM_THREADS"] = "1"  # processes with many threads slow each other down
        waiting: Iterator[tuple[int, Task]] = enumerate(tasks)
        deaths: Counter[int] = Counter()
        while True:
            lost: list[tuple[int, Task]] = []
            yield from self._until_a_death(function, waiting, lost)
            if not lost:
                return
            deaths.update(number for number, _ in lost)
            if max(deaths.values()) >= ATTEMPTS:
                fewer = " with fewer jobs" if self.jobs > 1 else ""
                raise RunError(
                    f"a worker was killed, {ATTEMPTS} times at the same task, perhaps for lack of "
                    f"memory. What is finished is kept. Run again{fewer} to continue."
                )
            waiting = itertools.chain(lost, waiting)

    def _until_a_death(
        self,
        function: Callable[[Task], Any],
        waiting: Iterator[tuple[int, Task]],
        lost: list[tuple[int, Task]],
    ) -> Generator[tuple[Task, Any]]:
        """Run tasks in a pool until it breaks; `lost` are then those that were running."""
        others = set(active_children())
        running: dict[Future[Any], tuple[int, Task]] = {}
        with ProcessPoolExecutor(
            self.jobs, mp_context=get_context("spawn"), initializer=start_worker
        ) as pool:
            try:
                while True:
                    # No more than the workers can start: what waits in the pool would still be
                    # run after Ctrl-C.
                    for number, task in itertools.islice(waiting, self.jobs - len(running)):
                        future = pool.submit(run_on_worker, function, versions(), task)
                        running[future] = (number, task)
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        result = future.result()
                        yield running.pop(future)[1], result
            except BrokenProcessPool:
                lost.extend(running.values())
            except BaseException:
                for worker in set(active_children()) - others:
                    worker.terminate()
                raise


def start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        parent = parent_process()
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

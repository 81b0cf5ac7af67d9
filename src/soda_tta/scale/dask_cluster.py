"""Tasks on a Dask cluster: its scheduler, its retries, its dashboard."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from typing import Any

from soda_tta.errors import RunError, SodaError
from soda_tta.scale.backend import Backend, Task, check_versions, run_on_worker, versions

CONNECTING = 15  # seconds until an address counts as unreachable
QUEUED = 2  # tasks per thread of the cluster: the next one is there when a worker becomes free
COUNT_EVERY = 32  # results until the workers are counted again, because a cluster may grow


class DaskCluster(Backend):
    """Runs tasks on the workers of a Dask scheduler, which runs those of a dead worker again.

    Parameters
    ----------
    address : str or None
        Of the scheduler; None starts one on this machine.
    jobs : int
        Workers of a scheduler on this machine.
    """

    shares_cores = True

    def __init__(self, address: str | None, jobs: int) -> None:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise SodaError("backend=\"dask\" needs Dask: pip install 'soda-tta[dask]'.") from error
        self.own: Any = None
        if address is None:
            self.own = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        try:
            self.client = Client(self.own or address, timeout=CONNECTING)
            self.client.wait_for_workers(1, timeout=CONNECTING)
        except TimeoutError as error:
            raise SodaError(
                f"the Dask scheduler at {address} has no worker; start some with "
                f"'dask worker {address} --nthreads 1'."
            ) from error
        except (OSError, ValueError) as error:
            raise SodaError(
                f"no Dask scheduler answers at {address}: {error}; start one with "
                "'dask scheduler', and give its address such as tcp://host:8786."
            ) from error

    def describe(self) -> str:
        return f"on Dask; dashboard: {self.client.dashboard_link}"

    def run(
        self, function: Callable[[Task], Any], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Any]]:
        from distributed import KilledWorker, as_completed

        remaining = iter(tasks)
        running: dict[Any, Task] = {}
        finished = as_completed()
        most = self._most()

        def submit() -> None:
            for task in islice(remaining, most - len(running)):
                future = self.client.submit(run_on_worker, function, versions(), task, pure=False)
                running[future] = task
                finished.add(future)

        try:
            submit()
            count = 0
            while running:
                future = next(finished)
                try:
                    result = check_versions(future.result())
                except KilledWorker as error:
                    raise RunError(
                        f"workers were killed again and again at the same task: {error} "
                        "What is finished is kept; give workers more memory and run again."
                    ) from error
                except CancelledError as error:
                    raise RunError(
                        "the Dask scheduler has gone away. What is finished is kept; start it "
                        "again and continue."
                    ) from error
                yield running.pop(future), result
                count += 1
                if count % COUNT_EVERY == 0:
                    most = self._most()
                submit()
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self.client.cancel(list(running))

    def _most(self) -> int:
        """Tasks to have on the cluster at a time."""
        threads = sum(int(count) for count in self.client.nthreads().values())
        return QUEUED * max(1, threads)

    def close(self) -> None:
        with suppress(Exception):  # the scheduler may be gone
            self.client.close()
        if self.own is not None:
            self.own.close()

"""Tasks on a Ray cluster: its scheduler, its retries, its dashboard."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Any

from soda_tta.errors import RunError, SodaError
from soda_tta.scale.backend import (
    ATTEMPTS,
    Backend,
    Task,
    check_versions,
    run_on_worker,
    versions,
)

CONNECTING = 15  # seconds until an address counts as unreachable
QUEUED = 2  # tasks per core of the cluster: the next one is there when a worker becomes free
PLACE = re.compile(r"(?:ray://)?(?P<host>[^:/]+):(?P<port>\d+)")


class RayCluster(Backend):
    """Runs tasks on the workers of a Ray cluster, which runs those of a dead worker again.

    Parameters
    ----------
    address : str or None
        "host:6379", "ray://host:10001" or "auto"; None starts Ray on this machine.
    jobs : int
        Workers of a Ray on this machine.
    """

    shares_cores = True

    def __init__(self, address: str | None, jobs: int) -> None:
        try:
            import ray
        except ImportError as error:
            raise SodaError("backend=\"ray\" needs Ray: pip install 'soda-tta[ray]'.") from error
        self.ray = ray
        self.is_ours = not ray.is_initialized()  # otherwise the caller's own connection is used
        if not self.is_ours:
            return
        if address is not None:
            check_reachable(address)
        own = {"num_cpus": jobs, "include_dashboard": False} if address is None else {}
        try:
            ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise SodaError(
                f"Ray did not let this client in at {address}: {error}. If it has a token, "
                "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on its head; both need the same "
                "version of Ray."
            ) from error

    def describe(self) -> str:
        return "on Ray"

    def run(
        self, function: Callable[[Task], Any], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Any]]:
        ray = self.ray
        worker = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(run_on_worker)
        remaining = iter(tasks)
        running: dict[Any, Task] = {}
        try:
            while True:
                for task in islice(remaining, self._most() - len(running)):
                    running[worker.remote(function, versions(), task)] = task
                if not running:
                    return
                (finished,), _ = ray.wait(list(running), num_returns=1)
                try:
                    result = check_versions(ray.get(finished))
                except ray.exceptions.RayError as error:
                    raise RunError(
                        f"workers were killed, {ATTEMPTS} times at the same task: "
                        f"{type(error).__name__}. What is finished is kept; give workers more "
                        "memory and run again."
                    ) from error
                yield running.pop(finished), result
        finally:
            for reference in running:
                ray.cancel(reference, force=True)

    def _most(self) -> int:
        """Tasks to have on the cluster at a time."""
        return QUEUED * max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def close(self) -> None:
        if self.is_ours:
            self.ray.shutdown()


def check_reachable(address: str) -> None:
    """Refuse an address at which nobody listens; Ray itself would wait for a minute."""
    place = PLACE.fullmatch(address)
    if place is None:
        return
    try:
        socket.create_connection((place["host"], int(place["port"])), CONNECTING).close()
    except OSError as error:
        raise SodaError(
            f"no Ray cluster answers at {address}: {error}; start one with 'ray start --head', and "
            "give its address such as host:6379."
        ) from error

"""What runs tasks somewhere: `bench` and `apply` know nothing else about engines."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, TypeVar

from soda_tta._version import __version__
from soda_tta.errors import SodaError

# Packages that the answers, or the files they are written to, depend on.
COMPARED = ("numpy", "onnxruntime", "pillow", "pyarrow", "scipy", "torch")
ATTEMPTS = 3  # of a task whose worker dies; then the task itself is the likely cause
MISMATCH = "VersionMismatch"

Task = TypeVar("Task")


@dataclass(frozen=True)
class Failure:
    """An error as text: not every exception can be sent between processes.

    Parameters
    ----------
    kind : str
        The name of its class.
    message : str
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class Backend(ABC):
    """Runs tasks and yields each with its result as it ends, in any order.

    Tasks are taken from their iterator only as workers become free, so that it may be long, and
    so that a caller stops by ending it. A task whose worker dies runs again on another one.
    """

    @property
    @abstractmethod
    def shares_cores(self) -> bool:
        """Whether several tasks share a machine, so that each must do with one thread."""

    @abstractmethod
    def run(
        self, function: Callable[[Task], Any], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Any]]:
        """Yield `(task, result)`; the result of a task that raised is a `Failure`.

        Closing the generator ends the tasks. Dask finishes those that are running already.

        Parameters
        ----------
        function : callable
            Can be imported by the workers.
        tasks : iterable
        """

    def describe(self) -> str:
        """Where the tasks run, in a few words."""
        return "in this process"

    def close(self) -> None:  # noqa: B027 - only an engine has something to close
        """Leave the engine."""

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Here(Backend):
    """Runs one task after the other in this process; an unexpected error is raised as it is.

    >>> list(Here().run(abs, [-1, 2]))
    [(-1, 1), (2, 2)]
    """

    shares_cores = False

    def run(
        self, function: Callable[[Task], Any], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Any]]:
        for task in tasks:
            try:
                result = function(task)
            except SodaError as error:
                result = failure_of(error)
            yield task, result


@cache
def versions() -> dict[str, str]:
    """The versions that client and workers must share."""
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "soda-tta": __version__}
    for name in COMPARED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def differences(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """What differs, as texts.

    >>> differences({"torch": "2.5", "numpy": "2.4"}, {"torch": "2.6", "numpy": "2.4"})
    ['torch 2.6 instead of 2.5']
    """
    return [
        f"{name} {theirs.get(name)} instead of {version}"
        for name, version in ours.items()
        if theirs.get(name) != version
    ]


def run_on_worker(function: Callable[[Task], Any], client: dict[str, str], task: Task) -> Any:
    """Run a task in a worker, if the worker has the versions of the client.

    Parameters
    ----------
    function : callable
    client : dict
        The `versions()` of the client.
    task : what the function takes.
    """
    if different := differences(client, versions()):
        return Failure(
            MISMATCH,
            f"the worker on {platform.node()} has {', '.join(different)}; install the same "
            "versions on the client and on every worker.",
        )
    try:
        return function(task)
    except (Exception, SystemExit) as error:
        return failure_of(error)


def failure_of(error: BaseException) -> Failure:
    """An error as text."""
    return Failure(type(error).__name__, str(error))


def check_versions(result: Any) -> Any:
    """The result of a task; raises if its worker has other versions than the client."""
    if isinstance(result, Failure) and result.kind == MISMATCH:
        raise SodaError(result.message)
    return result

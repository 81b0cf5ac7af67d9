"""Tasks in processes of this machine; tests/peers has clusters."""

import importlib
import sys
from functools import partial
from types import ModuleType

import pytest

from soda_tta.adaptors import Bank
from soda_tta.errors import BoxUnavailable, RunError, SodaError
from soda_tta.scale.archive import apply_archive
from soda_tta.scale.backend import MISMATCH, Failure, Here, run_on_worker, versions
from soda_tta.scale.backends import find_backend
from soda_tta.scale.processes import Processes


@pytest.fixture(autouse=True)
def workers_start_fast(monkeypatch, warm_processes) -> None:
    monkeypatch.setattr("soda_tta.scale.processes.get_context", lambda how: warm_processes)


# A module of its own: workers need not import what this file imports.
KILLING = """
import os, signal
from pathlib import Path

def square(marker, always, task):
    if task == 2 and (always or not Path(marker).exists()):
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if task == 3:
        raise ValueError("a slip")
    return task * task
"""


@pytest.fixture
def killing(tmp_path, monkeypatch) -> ModuleType:
    """A function that kills its worker at task 2: always, or the first time."""
    (tmp_path / "killing_worker.py").write_text(KILLING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "killing_worker", raising=False)
    return importlib.import_module("killing_worker")


def test_the_tasks_of_a_killed_worker_run_again(killing, tmp_path) -> None:
    function = partial(killing.square, str(tmp_path / "marker"), False)
    results = dict(Processes(2).run(function, iter(range(6))))
    assert (tmp_path / "marker").exists()
    assert results.pop(3) == Failure("ValueError", "a slip")
    assert results == {task: task * task for task in (0, 1, 2, 4, 5)}


def test_a_task_that_kills_every_worker_is_given_up(killing, tmp_path) -> None:
    function = partial(killing.square, str(tmp_path / "marker"), True)
    with pytest.raises(RunError, match="a worker was killed, 3 times at the same task"):
        list(Processes(1).run(function, range(6)))


def test_tasks_are_taken_as_workers_become_free() -> None:
    taken: list[int] = []

    def tasks():
        for task in range(100):
            taken.append(task)
            yield task

    results = Processes(1).run(abs, tasks())
    next(results)
    assert len(taken) < 5
    results.close()


def test_processes_give_the_same_files(folder, tiny_onnx, tmp_path, contents) -> None:
    adaptor = Bank().adaptor({"brightness": 0.3})
    model = str(tiny_onnx())
    how = {"adaptor": adaptor, "images": folder, "box": model, "shard_size": 5}
    here = apply_archive(**how, out=tmp_path / "here")
    apart = apply_archive(**how, out=tmp_path / "apart", backend=Processes(2))
    assert here == apart
    assert contents(str(tmp_path / "here")) == contents(str(tmp_path / "apart"))


class Failing(Here):
    """Every task fails for a reason that the others have, too. The results are kept."""

    def __init__(self) -> None:
        self.ended = False

    def run(self, function, tasks):
        self.results = self.failures(tasks)
        return self.results

    def failures(self, tasks):
        try:
            for task in tasks:
                yield task, Failure("BoxUnavailable", "the model is gone")
        finally:
            self.ended = True


def test_workers_end_with_the_first_error_that_all_share(folder, tiny_onnx, tmp_path) -> None:
    backend = Failing()
    how = {"adaptor": Bank().adaptor({}), "images": folder, "box": str(tiny_onnx())}
    with pytest.raises(BoxUnavailable, match="the model is gone"):
        apply_archive(**how, out=tmp_path / "out", shard_size=5, backend=backend)
    assert backend.ended


def test_another_model_on_a_worker_is_refused(folder, tiny_onnx, tmp_path, monkeypatch) -> None:
    from soda_tta.scale import archive

    tiny_onnx.matrix = -tiny_onnx.matrix
    other = str(tiny_onnx())
    tiny_onnx.matrix = -tiny_onnx.matrix
    monkeypatch.setattr(archive, "portable", lambda model: other)  # as if it lay at the same path
    with pytest.raises(SodaError, match="is not the model of the client"):
        apply_archive(
            Bank().adaptor({}), folder, str(tiny_onnx()), tmp_path / "out", backend=Processes(1)
        )


def test_other_versions_are_named() -> None:
    client = versions() | {"torch": "1.0", "soda-tta": "0.0.9"}
    failure = run_on_worker(abs, client, 1)
    assert failure.kind == MISMATCH
    assert f"soda-tta {versions()['soda-tta']} instead of 0.0.9" in failure.message
    assert "torch" in failure.message and "install the same versions" in failure.message
    assert run_on_worker(abs, versions(), -1) == 1


def test_unexpected_errors_of_this_process_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(Here().run(lambda task: 1 / task, [0]))


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("spark", {}, "use one of local, dask, ray"),
        ("local", {"address": "host:1"}, 'address= is for backend="dask"'),
        ("dask", {"address": "tcp://host:1", "jobs": 2}, "jobs= is for this machine"),
        ("dask", {"address": "tcp://127.0.0.1:1"}, "no Dask scheduler answers at tcp://127.0.0.1"),
        ("dask", {"address": "sftp://x"}, "no Dask scheduler answers at sftp://x"),
    ],
)
def test_engines_that_cannot_be_used(monkeypatch, name: str, more: dict, message: str) -> None:
    monkeypatch.setattr("soda_tta.scale.dask_cluster.CONNECTING", 0.2)
    with pytest.raises(SodaError, match=message):
        find_backend(name, **more)


@pytest.mark.parametrize(("name", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_engine_is_named(monkeypatch, name: str, module: str) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(SodaError, match=rf"pip install 'soda-tta\[{name}\]'"):
        find_backend(name)

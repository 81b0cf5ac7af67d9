"""Real crashes of real processes: SIGKILL at any moment, and a disk without space."""

import json
import os
import resource
import runpy
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from soda_tta import Run

assert os.name == "posix"  # these tests need a POSIX kernel
assert resource.RLIMIT_FSIZE

Start = Callable[..., BaseProcess]


@pytest.fixture
def start(warm_processes, tmp_path: Path) -> Start:
    """Runs a script, with its arguments as the list `arguments`, in a process of its own."""

    def run(script: str, *arguments: object) -> BaseProcess:
        path = tmp_path / "script.py"
        path.write_text(script)
        names = {"arguments": [str(each) for each in arguments]}
        process = warm_processes.Process(target=runpy.run_path, args=(str(path), names, "__main__"))
        process.start()
        return process

    return run


def exit_code(process: BaseProcess) -> int | None:
    """Wait for the process to end."""
    process.join()
    return process.exitcode


SODA_SCRIPT = """
import warnings, numpy as np
from soda_tta import adapt
warnings.simplefilter("ignore")
weights = np.random.default_rng(7).normal(size=(3, 4))
def model(images):
    open(arguments[1], "a").write(f"{len(images)}\\n")
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
images = np.random.default_rng(3).random((600, 3, 8, 8), dtype=np.float32)
settings = dict(method="soda", epochs=6, batch=64, width=4, lr=0.05)
adapt(images, model, out=arguments[0], resume="resume" in arguments, **settings)
"""


def test_a_run_killed_at_any_moment_resumes_bit_for_bit(
    start: Start, tmp_path, assert_same_files
) -> None:
    def run(folder: str, log: str, *more: str) -> BaseProcess:
        return start(SODA_SCRIPT, tmp_path / folder, tmp_path / log, *more)

    assert exit_code(run("whole", "log-whole")) == 0
    kills = 0
    more = ()
    for patience in (0.0, 0.02, 0.1, 0.2, 0.05, 0.3, 0.1):  # seconds from the first request
        process = run("run", "log", *more)
        wait_for_requests(process, tmp_path / "log", 1)
        time.sleep(patience)
        kills += kill(process)
        more = ("resume",) if (tmp_path / "run" / "run.json").exists() else ()
    assert exit_code(run("run", "log", *more)) == 0
    assert kills >= 3
    assert_same_files(tmp_path / "whole", tmp_path / "run")
    sent = total(tmp_path / "log")
    needed = total(tmp_path / "log-whole")
    assert sent <= billed(tmp_path / "run")  # every query that the model received is in the ledger
    assert needed <= sent <= needed + kills * 600  # a kill loses at most the request under way


def wait_for_requests(process: BaseProcess, log: Path, more: int) -> None:
    """Wait until the process has sent so many more requests, or has ended."""
    already = lines(log)
    while process.is_alive() and lines(log) < already + more:
        time.sleep(0.002)


def kill(process: BaseProcess) -> bool:
    """Kill the process (SIGKILL); False if it had ended already."""
    running = process.is_alive()
    process.kill()
    process.join()
    return running


def lines(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def total(log: Path) -> int:
    return sum(int(line) for line in log.read_text().split())


def billed(folder: Path) -> int:
    return sum(json.loads((folder / "run.json").read_text())["queries"].values())


SODA_E_SCRIPT = """
import time, warnings, numpy as np
from soda_tta import adapt
warnings.simplefilter("ignore")
weights = np.random.default_rng(7).normal(size=(3, 4))
def model(images):
    with open(arguments[1], "a") as file:
        file.write(f"{len(images)}\\n")
    time.sleep(0.02)
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
resume = "resume" in arguments
adapt(np.load(arguments[2]), model, method="soda-e", out=arguments[0], resume=resume)
"""


def test_soda_e_killed_at_any_moment_resumes_bit_for_bit(
    start: Start, tmp_path, faded_images, assert_same_files
) -> None:
    np.save(tmp_path / "images.npy", faded_images())

    def run(folder: str, log: str, *more: str) -> BaseProcess:
        paths = [tmp_path / name for name in (folder, log, "images.npy")]
        return start(SODA_E_SCRIPT, *paths, *more)

    assert exit_code(run("whole", "log-whole")) == 0
    kills = 0
    more = ()
    for requests in (1, 4, 8, 6):  # before the process is killed
        process = run("run", "log", *more)
        wait_for_requests(process, tmp_path / "log", requests)
        kills += kill(process)
        more = ("resume",) if (tmp_path / "run" / "run.json").exists() else ()
    assert exit_code(run("run", "log", *more)) == 0
    assert kills >= 3
    assert_same_files(tmp_path / "whole", tmp_path / "run")
    sent = total(tmp_path / "log")
    needed = total(tmp_path / "log-whole")
    # A kill loses at most the question under way: 30 moves on 90 images.
    assert needed < sent <= billed(tmp_path / "run") <= needed + kills * 30 * 90


FULL_DISK_SCRIPT = """
import pathlib, resource, sys, warnings, numpy as np
from soda_tta import adapt
from soda_tta.errors import RunError
warnings.simplefilter("ignore")
images = np.random.default_rng(0).random((64, 3, 8, 8), dtype=np.float32)
uniform = lambda x: np.full((len(x), 4), 0.25)
uniform.__qualname__ = "uniform"
if arguments[1] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
settings = dict(method="soda", epochs=20, batch=16, width=4, lr=0.05)
try:
    adapt(images, uniform, out=arguments[0], resume=arguments[1] == "resume", **settings)
except RunError as error:
    pathlib.Path(arguments[2]).write_text(str(error))
    sys.exit(3)
"""


def test_a_full_disk_gives_a_clear_error_and_the_run_continues_once_there_is_space(
    start: Start,
    tmp_path,
) -> None:
    def code(how: str) -> int | None:
        process = start(FULL_DISK_SCRIPT, tmp_path / "run", how, tmp_path / "error.txt")
        return exit_code(process)

    assert code("full") == 3  # the kernel refuses to let files grow: a real error from a real write
    assert "could not be written" in (tmp_path / "error.txt").read_text()
    assert not list((tmp_path / "run").rglob("*.tmp"))
    assert code("resume") == 0
    assert Run.load(tmp_path / "run").stopped == "finished"

"""Real crashes of real processes: SIGKILL at any moment, and a disk without space."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from soda_tta import Run

assert os.name == "posix"  # these tests need a POSIX kernel
assert resource.RLIMIT_FSIZE

SODA_SCRIPT = """
import sys, warnings, numpy as np
from soda_tta import adapt
warnings.simplefilter("ignore")
weights = np.random.default_rng(7).normal(size=(3, 4))
def model(images):
    open(sys.argv[2], "a").write(f"{len(images)}\\n")
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
images = np.random.default_rng(3).random((600, 3, 8, 8), dtype=np.float32)
settings = dict(method="soda", epochs=6, batch=64, width=4, lr=0.05)
adapt(images, model, out=sys.argv[1], resume="resume" in sys.argv, **settings)
"""


def test_a_run_killed_at_any_moment_resumes_bit_for_bit(tmp_path, assert_same_files) -> None:
    script = tmp_path / "script.py"
    script.write_text(SODA_SCRIPT)

    def start(folder: str, log: str, *more: str) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, script, tmp_path / folder, tmp_path / log, *more])

    assert start("whole", "log-whole").wait() == 0
    kills = 0
    more = ()
    for patience in (0.0, 0.02, 0.1, 0.2, 0.05, 0.3, 0.1):  # seconds from the first request
        process = start("run", "log", *more)
        wait_for_requests(process, tmp_path / "log", 1)
        time.sleep(patience)
        kills += kill(process)
        more = ("resume",) if (tmp_path / "run" / "run.json").exists() else ()
    assert start("run", "log", *more).wait() == 0
    assert kills >= 3
    assert_same_files(tmp_path / "whole", tmp_path / "run")
    sent = total(tmp_path / "log")
    needed = total(tmp_path / "log-whole")
    assert sent <= billed(tmp_path / "run")  # every query that the model received is in the ledger
    assert needed <= sent <= needed + kills * 600  # a kill loses at most the request under way


def wait_for_requests(process: subprocess.Popen, log: Path, more: int) -> None:
    """Wait until the process has sent so many more requests, or has ended."""
    already = lines(log)
    while process.poll() is None and lines(log) < already + more:
        time.sleep(0.002)


def kill(process: subprocess.Popen) -> bool:
    """Kill the process; False if it had ended already."""
    running = process.poll() is None
    if running:
        process.send_signal(signal.SIGKILL)
    process.wait()
    return running


def lines(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def total(log: Path) -> int:
    return sum(int(line) for line in log.read_text().split())


def billed(folder: Path) -> int:
    return sum(json.loads((folder / "run.json").read_text())["queries"].values())


SODA_E_SCRIPT = """
import sys, time, warnings, numpy as np
from soda_tta import adapt
warnings.simplefilter("ignore")
weights = np.random.default_rng(7).normal(size=(3, 4))
def model(images):
    with open(sys.argv[2], "a") as file:
        file.write(f"{len(images)}\\n")
    time.sleep(0.02)
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
adapt(np.load(sys.argv[3]), model, method="soda-e", out=sys.argv[1], resume="resume" in sys.argv)
"""


def test_soda_e_killed_at_any_moment_resumes_bit_for_bit(
    tmp_path, faded_images, assert_same_files
) -> None:
    (tmp_path / "script.py").write_text(SODA_E_SCRIPT)
    np.save(tmp_path / "images.npy", faded_images())

    def start(folder: str, log: str, *more: str) -> subprocess.Popen:
        paths = [tmp_path / name for name in ("script.py", folder, log, "images.npy")]
        return subprocess.Popen([sys.executable, *paths, *more])

    assert start("whole", "log-whole").wait() == 0
    kills = 0
    more = ()
    for requests in (1, 4, 8, 6):  # before the process is killed
        process = start("run", "log", *more)
        wait_for_requests(process, tmp_path / "log", requests)
        kills += kill(process)
        more = ("resume",) if (tmp_path / "run" / "run.json").exists() else ()
    assert start("run", "log", *more).wait() == 0
    assert kills >= 3
    assert_same_files(tmp_path / "whole", tmp_path / "run")
    sent = total(tmp_path / "log")
    needed = total(tmp_path / "log-whole")
    # A kill loses at most the question under way: 30 moves on 90 images.
    assert needed < sent <= billed(tmp_path / "run") <= needed + kills * 30 * 90


FULL_DISK_SCRIPT = """
import resource, sys, warnings, numpy as np
from soda_tta import adapt
from soda_tta.errors import RunError
warnings.simplefilter("ignore")
images = np.random.default_rng(0).random((64, 3, 8, 8), dtype=np.float32)
uniform = lambda x: np.full((len(x), 4), 0.25)
uniform.__qualname__ = "uniform"
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
settings = dict(method="soda", epochs=20, batch=16, width=4, lr=0.05)
try:
    adapt(images, uniform, out=sys.argv[1], resume=sys.argv[2] == "resume", **settings)
except RunError as error:
    print(error)
    sys.exit(3)
"""


def test_a_full_disk_gives_a_clear_error_and_the_run_continues_once_there_is_space(
    tmp_path,
) -> None:
    def start(how: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", FULL_DISK_SCRIPT, tmp_path / "run", how]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    full = start("full")  # the kernel refuses to let files grow: a real error from a real write
    assert full.returncode == 3, full.stderr
    assert "could not be written" in full.stdout
    assert not list((tmp_path / "run").rglob("*.tmp"))
    resumed = start("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert Run.load(tmp_path / "run").stopped == "finished"

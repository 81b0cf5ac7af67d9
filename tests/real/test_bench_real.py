"""A small grid on real images and a real model: run, killed, continued, printed."""

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest

from soda_tta.bench import Store

pytestmark = pytest.mark.real

GRID = """
[[cells]]
method = ["deployed", "soda", "soda-fo", "bn"]
corruption = ["contrast", "fog"]
images = 64
curve = 1
numbers = { epochs = 2, lr = 0.05 }
"""
BENCH = [sys.executable, "-c", "from soda_tta.cli import main; raise SystemExit(main())", "bench"]


def wait_until_gone(place) -> None:
    """The workers of a killed grid end by themselves."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not any(process.info["cwd"] == str(place) for process in psutil.process_iter(["cwd"])):
            return
        time.sleep(0.1)
    raise AssertionError("a worker outlived its parent")


def test_a_killed_grid_goes_on_where_it_was(tmp_path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    command = [*BENCH, "run", "grid.toml", "--out", "store", "--jobs", "2", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    results = tmp_path / "store" / "results.jsonl"
    deadline = time.monotonic() + 120
    while not (results.exists() and results.read_text().count("\n") >= 2) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until_gone(tmp_path)
    kept = results.read_text().splitlines()[:2]
    done = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert done["run"] <= 6 and len(Store(tmp_path / "store")) == 8
    assert results.read_text().splitlines()[:2] == kept
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["run"] == 0
    for cell, result in Store(tmp_path / "store"):
        assert len(result["curve"]) == (2 if cell.method in ("soda", "soda-fo") else 0)
    table = subprocess.run([*BENCH, "table", "store"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "| contrast |" in table and "| mean of 2 |" in table

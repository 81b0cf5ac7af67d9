"""The tables of docs/economy.md are what the results give."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_results_give() -> None:
    command = [sys.executable, ROOT / "benchmarks" / "economy.py", "page", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

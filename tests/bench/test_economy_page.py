"""The tables of docs/research/soda-e.md match the stored results."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_matches_the_stored_results() -> None:
    command = [sys.executable, ROOT / "benchmarks" / "economy.py", "page", "--check"]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr

"""The example that needs real data and a trained model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
SCRIPT = Path(__file__).parents[2] / "examples" / "paper_row.py"


def test_one_row_of_the_paper() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    accuracies = {}
    for line in done.stdout.splitlines()[2:]:
        name, accuracy, _ = line.split()
        accuracies[name] = float(accuracy.rstrip("%"))
    assert accuracies["soda-e"] > accuracies["deployed"] + 30
    assert set(accuracies) == {"deployed", "soda-e", "soda", "soda-fo", "bn"}

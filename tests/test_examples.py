"""The scripts in examples/ run as they are and print what they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(name: str, *arguments: str) -> str:
    """Run a script in its own process; returns what it prints."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_run() -> None:
    here = Path(__file__).parent
    text = Path(__file__).read_text() + (here / "real" / "test_examples_real.py").read_text()
    assert not [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in text]


def test_first_adaptation() -> None:
    printed = run_example("first_adaptation.py")
    assert "accuracy    30.0% -> 9" in printed and "Adopt:" in printed


def test_own_onnx_model(tmp_path) -> None:
    from soda_tta.zoo.digits import hazy_digits

    model, images = hazy_digits(tmp_path)
    printed = run_example("own_onnx_model.py", str(model), str(images), "--out", str(tmp_path))
    assert "the verdict is to adopt" in printed
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 900
    assert (tmp_path / "adaptor.onnx").exists()


def test_stream() -> None:
    printed = run_example("stream.py")
    assert printed.count("queries per image so far") == 3


@pytest.mark.parametrize("word", ["brighten on 64 images", "Finished."])
def test_own_method(word: str) -> None:
    assert word in run_example("own_method.py")

"""The scripts in examples/ run as they are and print what they promise."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
Run = Callable[..., str]


@pytest.fixture
def run_example(monkeypatch, capsys) -> Run:
    """A function that runs a script as the main program and returns what it prints."""

    def run(name: str, *arguments: str) -> str:
        path = str(EXAMPLES / name)
        monkeypatch.setattr(sys, "argv", [path, *arguments])
        runpy.run_path(path, run_name="__main__")
        return capsys.readouterr().out

    return run


def test_every_example_is_run() -> None:
    here = Path(__file__).parent
    text = Path(__file__).read_text() + (here / "real" / "test_examples_real.py").read_text()
    assert not [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in text]


def test_first_adaptation() -> None:
    """In a process of its own, as a user starts it."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / "first_adaptation.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    assert "accuracy    30.0% -> 9" in done.stdout and "Adopt:" in done.stdout


@pytest.mark.filterwarnings("ignore")
def test_own_onnx_model(tmp_path, run_example: Run) -> None:
    from soda_tta.zoo.digits import hazy_digits

    model, images = hazy_digits(tmp_path)
    printed = run_example("own_onnx_model.py", str(model), str(images), "--out", str(tmp_path))
    assert "the verdict is to adopt" in printed
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 900
    assert (tmp_path / "adaptor.onnx").exists()


@pytest.mark.filterwarnings("ignore")
def test_stream(run_example: Run) -> None:
    printed = run_example("stream.py")
    assert printed.count("queries per image so far") == 3


@pytest.mark.filterwarnings("ignore")
def test_own_method(run_example: Run) -> None:
    printed = run_example("own_method.py")
    assert "brighten on 64 images" in printed and "Finished." in printed

"""Errors of all commands: one line that names the remedy, in flags; a traceback with --debug."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ADAPT, Soda

MODEL = ["--model", "{model}:predict"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*ADAPT, "--out", "r", "--set", "qq=3"], "has no setting 'qq'"),
        ([*ADAPT, "--out", "r", "--set", "q"], "NAME=VALUE"),
        ([*ADAPT, "--out", "r", "--method", "sodda"], "choose one of"),
        ([*ADAPT, "--out", "r", "--budget", "0.5"], "at least 1"),
        ([*ADAPT], "--out RUN"),
        ([*ADAPT, "--out", "r", "--device", "abacus"], "is not a device of this machine"),
        ([*ADAPT, "--out", "r", "--provider", "cuda"], "does not have the option provider"),
        ([*ADAPT, "--out", "r", "--price", "-1"], "'-1' is not a valid price"),
        ([*ADAPT, "--out", "r", "--method", "soda", "--set", "tau=2"], "--set tau=2"),
        (shlex.split("adapt --model {model}:logits --images night --out r"), "pass --logits"),
        (shlex.split("adapt --model {model}:nothing --images night --out r"), "no function"),
        (
            shlex.split("adapt --model weights.pth --images night --out r"),
            "export the model to ONNX",
        ),
        (shlex.split("adapt --model none.onnx --images night --out r"), "does not exist"),
        (["adapt", *MODEL, *shlex.split("--images nowhere --out r")], "does not exist"),
        (
            shlex.split("apply --adaptor night/00.png --images night --save-images x"),
            "not an adaptor",
        ),
        (shlex.split("apply --adaptor night --images night"), "give --model"),
        (
            shlex.split("apply --adaptor night --images night --save-images x --resume"),
            "give --out",
        ),
        (shlex.split("export nowhere x.onnx"), "does not exist"),
        (["adapt", "--images", "night"], "required: --model"),
        (["raport"], "invalid choice"),
    ],
)
def test_an_error_is_one_line_with_a_remedy(soda: Soda, words: list[str], message: str) -> None:
    done = soda(*words)
    assert done.code == 2 and message in done.err
    assert done.err.count("\n") == 1 and done.err.startswith("soda-tta")
    assert "Traceback" not in done.err


def test_debug_raises_the_error(soda: Soda) -> None:
    from soda_tta.errors import MethodError

    words = [*ADAPT, "--out", "r", "--set", "qq=3"]
    for place in (0, len(words)):  # before the command and after it
        with pytest.raises(MethodError):
            soda(*words[:place], "--debug", *words[place:])


def test_an_internal_error_is_one_line_and_debug_shows_its_traceback(
    soda: Soda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_bug(*_: object, **__: object) -> None:
        raise AttributeError("a bug\x1b[2J")

    monkeypatch.setattr("soda_tta.engine.saved.load_adaptor", with_a_bug)
    done = soda("export", "run", "x.onnx")
    assert done.code == 70
    assert done.err.count("\n") == 1 and "--debug" in done.err and "\x1b" not in done.err
    for words in (["--debug", "export", "run", "x.onnx"], ["export", "run", "x.onnx", "--debug"]):
        with pytest.raises(AttributeError):
            soda(*words)


def test_a_full_disk_is_not_called_a_bug() -> None:
    words = [sys.executable, "-m", "soda_tta", "methods"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    message = "soda-tta: No space left on device: free some and run again"
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m soda_tta methods --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "[0\n" and done.stderr == ""

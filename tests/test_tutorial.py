"""The commands of the tutorial work, one after the other, and print what it shows."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"
PREPARATION = 2  # the first blocks of Python: they make the model, the images and the labels
ELSEWHERE = ("head", "...")  # not a command of ours; a part that is left out


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder with the model and the images of the tutorial."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    for block in blocks[:PREPARATION]:
        for example in doctest.DocTestParser().get_examples(block):
            exec(example.source, names)
    return tmp_path


def steps() -> list[tuple[str, list[str]]]:
    """Every command, with the lines that the tutorial shows of its output."""
    text = TUTORIAL.read_text()
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    commands = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)]
    return [(first, lines) for first, *lines in map(str.splitlines, filter(None, commands))]


def first_words(lines: list[str]) -> set[str]:
    """What is stable on other machines: how a line begins, without its figures."""
    words = {line.split()[0] for line in lines if line.split()}
    return {word for word in words if not any(sign.isdigit() for sign in word)}


def test_every_command_prints_lines_like_those_shown(place: Path) -> None:
    assert len(steps()) > 6
    for command, shown in steps():
        program, *words = shlex.split(command)
        if program in ELSEWHERE:
            continue
        done = subprocess.run(
            [sys.executable, "-m", "soda_tta", *words],
            cwd=place,
            env={**os.environ, "COLUMNS": "80"},  # lines break as shown
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        missing = first_words(shown) - first_words(done.stdout.splitlines()) - set(ELSEWHERE)
        assert not missing, f"{command} does not print a line that begins with {missing}"
    assert (place / "answers.csv").exists() and (place / "night.onnx").exists()

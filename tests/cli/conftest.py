"""A model that can fail, a folder of images, and two ways to run a command on them."""

from __future__ import annotations

import csv
import importlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from soda_tta.cli import main

SODA = [sys.executable, "-c", "from soda_tta.cli import main; raise SystemExit(main())"]
MODEL = """
import os, time
import numpy as np
weights = np.random.default_rng(7).normal(size=(3, 4))
queries = 0
fails_after = None  # queries
interrupted = False  # fails like Ctrl-C

def predict(images):
    global queries
    time.sleep(float(os.environ.get("SLOW", 0)))
    if fails_after is not None and queries + len(images) > fails_after:
        raise KeyboardInterrupt if interrupted else RuntimeError("the model is gone")
    queries += len(images)
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)

def logits(images):
    return 8 * (images.mean(axis=(2, 3)) - 0.5) @ weights
"""
ADAPT = shlex.split("adapt --model {model}:predict --images night")
SMALL = shlex.split("--method soda --set epochs=2 --set batch=16 --set width=4 --set lr=0.05")
APPLY = shlex.split("apply --adaptor run --model {model}:predict --images night")


class Done(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    err: str


Soda = Callable[..., Done]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model and the folder `night` of 40 images of 8 x 8."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{unique('model', tmp_path)}.py").write_text(MODEL)
    (tmp_path / "night").mkdir()
    for number in range(40):
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "night" / f"{number:02}.png")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def model(place: Path) -> Any:
    """The module of the model, which counts its queries."""
    return importlib.import_module(unique("model", place))


@pytest.fixture
def soda(model: Any, capsys: pytest.CaptureFixture[str]) -> Soda:
    """Runs a command in this process; `{model}` in its words is the name of the model's module."""

    def run(*words: str) -> Done:
        try:
            code = main([word.format(model=model.__name__) for word in words])
        except SystemExit as ended:  # argparse exits by itself
            code = int(ended.code or 0)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def finished_run(soda: Soda, model: Any) -> None:
    """A finished run of soda in the folder `run`; the model's queries are counted from 0 again."""
    assert soda(*ADAPT, *SMALL, "--out", "run").code == 0
    model.queries = 0


def in_process(place: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does: in a process of its own."""
    command = [word.format(model=unique("model", place)) for word in words]
    return subprocess.run(
        [*SODA, *command],
        cwd=place,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def unique(name: str, place: Path) -> str:
    """A name for a module that no other test imports."""
    return f"{name}_{place.name}".replace("-", "_")


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open() as file:
        return list(csv.DictReader(file))


def column(path: Path, name: str) -> list[str]:
    """One column of a CSV file."""
    return [row[name] for row in rows_of(path)]

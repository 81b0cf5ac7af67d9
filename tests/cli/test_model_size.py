"""Images larger than the model's input: the commands agree on the pixels, and say the size."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from .conftest import SMALL, Soda, column

NIGHT = ["--images", "night"]  # images of 8 x 8


@pytest.fixture
def model_words(tiny_onnx: Any, soda: Soda, place: Path) -> list[str]:
    """A model of 6 x 5 pixels, and a finished run in front of it."""
    words = ["--model", str(tiny_onnx(shape=("n", 3, 5, 6)))]
    done = soda("adapt", *words, *NIGHT, *SMALL, "--out", "run")
    assert done.code == 0 and "40, 8x8 resized to the model's 6x5" in done.out
    return words


def test_apply_answers_and_saves_what_the_run_did(
    soda: Soda, place: Path, model_words: list[str]
) -> None:
    words = ["apply", "--adaptor", "run", *NIGHT, "--save-images"]
    assert soda(*words, "with", *model_words, "--out", "a.csv").code == 0
    assert soda(*words, "without").code == 0
    assert column(place / "a.csv", "class") == column(place / "run" / "predictions.csv", "after")
    with Image.open(place / "with" / "00.png") as image:
        assert image.size == (6, 5)
    for name in ("00.png", "39.png"):
        first, second = (place / folder / name for folder in ("with", "without"))
        assert first.read_bytes() == second.read_bytes()


def test_report_export_and_dry_run_know_the_size(
    soda: Soda, place: Path, model_words: list[str]
) -> None:
    assert soda("report", "run").code == 0
    assert "<img" in (place / "run" / "report.html").read_text()
    assert json.loads(soda("export", "run", "x.onnx", "--json").out)["learned_at_size"] == [5, 6]
    assert "learned on images of 6x5" in soda("export", "run", "y.onnx").out
    assert soda("adapt", *model_words, *NIGHT, "--dry-run").code == 0


def test_apply_at_another_size_than_the_run_says_so(
    soda: Soda, place: Path, model_words: list[str]
) -> None:
    done = soda("apply", "--adaptor", "run", *NIGHT, *model_words, "--size", "7", "--out", "a.csv")
    assert done.code == 0
    assert "learned on images of 6x5, and these are 7x7" in done.err

"""`soda-tta export`: an ONNX file, and no file of the user overwritten."""

import json
from pathlib import Path

import pytest

from .conftest import ADAPT, SMALL, Soda


def test_the_onnx_file_gives_what_pytorch_gives(
    soda: Soda, place: Path, finished_run: None
) -> None:
    facts = json.loads(soda("export", "run", "night.onnx", "--json").out)
    assert facts["onnx"] == "night.onnx" and facts["largest_deviation"] <= 1e-5
    assert (place / "night.onnx").exists()
    assert "checked with ONNX Runtime" in soda("export", "run", "other.onnx").out


def test_a_file_is_overwritten_only_with_force(soda: Soda, place: Path, finished_run: None) -> None:
    (place / "model.onnx").write_bytes(b"the user's own")
    done = soda("export", "run", "model.onnx")
    assert done.code == 2 and "--force" in done.err
    assert (place / "model.onnx").read_bytes() == b"the user's own"
    assert soda("export", "run", "model.onnx", "--force").code == 0
    assert (place / "model.onnx").stat().st_size > 100


@pytest.mark.parametrize(
    "words",
    [
        ["export", "lame", "x.onnx"],
        ["apply", "--adaptor", "lame", "--images", "night", "--save-images", "x"],
    ],
)
def test_a_run_whose_answers_no_adaptor_gives_is_refused(soda: Soda, words: list[str]) -> None:
    assert soda(*ADAPT, "--method", "lame", "--out", "lame").code == 0
    done = soda(*words)
    assert done.code == 2 and "left no adaptor that gives its answers" in done.err


def test_an_adaptor_that_changes_nothing_is_exported_with_a_notice(soda: Soda) -> None:
    soda(*ADAPT, "--method", "deployed", "--out", "kept")
    done = soda("export", "kept", "kept.onnx")
    assert done.code == 0 and "leaves images as they are" in done.err


def test_a_notice_states_that_the_answers_of_the_run_were_averaged(soda: Soda) -> None:
    soda(*ADAPT, *SMALL, "--set", "average=true", "--out", "run")
    assert "averaged" in soda("export", "run", "x.onnx").err


@pytest.mark.parametrize("name", ["dusk.tflite", "dusk"])
def test_another_format_is_refused_with_the_remedy(
    soda: Soda, place: Path, finished_run: None, name: str
) -> None:
    done = soda("export", "run", name)
    assert done.code == 2 and "write dusk.onnx" in done.err
    assert not (place / name).exists()

"""`soda-tta export`: an ONNX file, and no file of the user overwritten."""

import json
from pathlib import Path

import pytest

from soda_tta.adaptors import Identity

from ..conftest import TinyOnnx
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
    assert soda("export", "run", "--force", "model.onnx").code == 0  # options in any place
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


MERGE = ["export", "run", "--merge", "behind.onnx"]


@pytest.fixture
def onnx_model(place: Path, tiny_onnx: TinyOnnx) -> None:
    """The file of a model next to the run: another one than that of the run."""
    tiny_onnx().rename(place / "behind.onnx")


def test_adaptor_and_model_become_one_file(
    soda: Soda, place: Path, finished_run: None, onnx_model: None
) -> None:
    done = soda(*MERGE, "--out", "adapted.onnx", "--images", "night")
    assert done.code == 0, done.err
    assert "checked with ONNX Runtime on 22 images" in done.out
    assert "uint8 NHWC, RGB bytes, n x image_height x image_width x 3" in done.out
    assert "this is not the model the adaptor was learned for" in done.err
    answers = {}
    for name, words in {
        "one": ["--model", "adapted.onnx", "--adaptor", "none.safetensors"],
        "two": ["--model", "behind.onnx", "--adaptor", "run"],
    }.items():
        Identity().save(place / "none.safetensors")
        assert soda("apply", *words, "--images", "night", "--out", f"{name}.csv").code == 0
        answers[name] = (place / f"{name}.csv").read_text().splitlines()
    for one, two in zip(answers["one"], answers["two"], strict=True):
        *facts, probability = one.rsplit(",", 1)
        assert two.rsplit(",", 1)[:-1] == facts
        if one != answers["one"][0]:  # the head
            assert float(two.rsplit(",", 1)[1]) == pytest.approx(float(probability), abs=1e-5)
    examined = soda("doctor", "--model", "adapted.onnx", "--images", "night")
    assert examined.code == 3 and "too few to learn from" in examined.out  # and not an error


def test_the_exported_files_are_described_as_json(
    soda: Soda, finished_run: None, onnx_model: None
) -> None:
    facts = json.loads(soda(*MERGE, "--json", "--takes", "float", "a.onnx").out)
    assert facts["path"] == "a.onnx" and facts["takes"] == "float"
    assert facts["largest_deviation"] <= 1e-5 and facts["learned_at_size"] == [8, 8]
    assert "not the model" in facts["notices"][0]
    facts = json.loads(soda(*MERGE, "--json", "--triton", "repository").out)
    assert facts["path"] == "repository/behind_adapted"


def test_triton_gets_the_model_of_the_run(soda: Soda, place: Path, onnx_model: None) -> None:
    words = ["adapt", "--model", "behind.onnx", "--images", "night", *SMALL]
    assert soda(*words, "--out", "run").code == 0
    done = soda("export", "run", "--triton", "repository")
    assert done.code == 0 and done.err == ""
    assert "the ensemble behind_adapted" in done.out
    (place / "behind.onnx").unlink()
    done = soda("export", "run", "--triton", "second")
    assert done.code == 2 and "--merge model.onnx" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "run"], "name the file to write"),
        (["export", "run", "a.onnx", "--out", "b.onnx"], "are the same"),
        (["export", "run", "a.onnx", "--triton", "b"], "a folder and --out a file"),
        (["export", "run", "a.onnx", "--takes", "float"], "--takes is about the model"),
        (["export", "run", "a.onnx", "--pixel-range", "255"], "--pixel-range is about the model"),
        (["export", "run", "a.onnx", "--merge", "b.tflite"], "tf2onnx"),
        (["export", "run", "--merge", "b.onnx", "--out", "dusk"], "write dusk.onnx"),
    ],
)
def test_impossible_exports_are_refused(soda: Soda, words: list[str], message: str) -> None:
    done = soda(*words)
    assert done.code == 2 and message in done.err

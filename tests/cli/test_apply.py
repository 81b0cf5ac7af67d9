"""`soda-tta apply`: answers that were billed are kept, and no file of the user is overwritten."""

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from .conftest import ADAPT, APPLY, Soda, column, rows_of

IN_PIECES = [*APPLY, "--request-size", "10"]


def test_apply_repeats_the_answers_of_the_run(soda: Soda, place: Path, finished_run: None) -> None:
    done = soda(*APPLY, "--out", "a.csv")
    assert done.code == 0 and "40 queries" in done.err and done.out == ""
    after = column(place / "run" / "predictions.csv", "after")
    assert column(place / "a.csv", "class") == after
    assert soda(*APPLY).out.splitlines() == (place / "a.csv").read_text().splitlines()


def test_json_prints_one_object_and_nothing_else(
    soda: Soda, place: Path, finished_run: None
) -> None:
    done = soda(*APPLY, "--json")
    answers = json.loads(done.out)
    assert done.err == ""
    assert answers["queries"] == 40 and answers["answers"][0]["image"] == "00.png"
    done = soda(*APPLY, "--json", "--out", "answers.json")
    assert json.loads(done.out)["out"] == "answers.json" and done.err == ""
    assert json.loads((place / "answers.json").read_text())["answers"] == answers["answers"]


def test_adapted_images_are_saved_without_a_model(
    soda: Soda, place: Path, finished_run: None
) -> None:
    words = shlex.split("apply --adaptor run --images night --save-images")
    done = soda(*words, "day")
    assert done.code == 0 and "40 adapted images -> day" in done.err
    assert len(list((place / "day").glob("*.png"))) == 40
    facts = json.loads(soda(*words, "other", "--json").out)
    assert facts == {"images": 40, "saved": "other", "queries": 0}


@pytest.mark.parametrize("interrupted", [False, True])
def test_answers_that_were_billed_survive_a_failure_of_the_model(
    soda: Soda, model: Any, place: Path, finished_run: None, interrupted: bool
) -> None:
    words = [*IN_PIECES, "--out"]
    assert soda(*words, "whole.csv").code == 0
    model.queries = 0
    model.fails_after = 25
    model.interrupted = interrupted
    done = soda(*words, "answers.csv")
    assert done.code == (130 if interrupted else 2)
    assert "What was answered so far is kept" in done.err
    assert done.err.rstrip().endswith("--resume")
    model.fails_after = None
    done = soda(*words, "answers.csv")
    assert done.code == 2 and "continue with --resume, or remove it" in done.err
    check_that_other_questions_are_refused(soda, model, place, words)
    done = soda(*words, "answers.csv", "--resume")
    # the ten of the request that failed were sent: they count
    assert done.code == 0 and "40 answers, 50 queries" in done.err
    assert model.queries == 40  # none twice
    assert rows_of(place / "answers.csv") == rows_of(place / "whole.csv")
    assert not list(place.glob("*.partial*"))
    done = soda(*words, "answers.csv", "--resume")
    assert done.code == 2 and "no answers to these images" in done.err


def check_that_other_questions_are_refused(
    soda: Soda, model: Any, place: Path, words: list[str]
) -> None:
    """Answers are resumed neither with other images of the same names nor with another model."""
    first = place / "night" / "00.png"
    pixels = first.read_bytes()
    Image.new("RGB", (8, 8)).save(first)
    done = soda(*words, "answers.csv", "--resume")
    assert done.code == 2 and "no answers to these images" in done.err
    first.write_bytes(pixels)
    done = soda(*words, "answers.csv", "--resume", "--mean", "0.1")
    assert done.code == 2 and "no answers to these images" in done.err
    assert model.queries == 20


def test_two_processes_do_not_pay_for_the_same_answers(
    soda: Soda, model: Any, place: Path, finished_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*APPLY, "--out", "answers.csv"]
    predict = model.predict
    others: list[Any] = []

    def predict_meanwhile(images: Any) -> Any:
        if not others:
            others.append(None)  # the others do not start others
            others.extend([soda(*words), soda(*words, "--resume")])
        return predict(images)

    monkeypatch.setattr(model, "predict", predict_meanwhile)
    assert soda(*words).code == 0
    assert model.queries == 40 and len(rows_of(place / "answers.csv")) == 40
    for done in others[1:]:
        assert done.code == 2
        assert "another process is writing these answers" in done.err
        assert "another --out" in done.err
    done = soda(*words)
    assert done.code == 2 and "use --force" in done.err and model.queries == 40
    assert soda(*words, "--force").code == 0


@pytest.mark.parametrize("out", ["file/answers.csv", "/proc/answers.csv", ".", "run"])
def test_a_file_that_cannot_be_written_costs_no_query(
    soda: Soda, model: Any, place: Path, finished_run: None, out: str
) -> None:
    (place / "file").write_text("")
    done = soda(*APPLY, "--out", out)
    assert done.code == 2 and "--out" in done.err and "bug" not in done.err
    assert model.queries == 0


def test_nothing_is_offered_to_resume_if_nothing_was_answered(
    soda: Soda, model: Any, place: Path, finished_run: None
) -> None:
    model.fails_after = 0
    done = soda(*APPLY, "--out", "answers.csv")
    assert done.code == 2 and "the model is gone" in done.err and "--resume" not in done.err
    assert not list(place.glob("*.partial*"))


def test_images_are_saved_before_the_first_query_and_only_once(
    soda: Soda, model: Any, place: Path, finished_run: None
) -> None:
    model.fails_after = 25
    done = soda(*IN_PIECES, "--save-images", "adapted", "--out", "answers.csv")
    assert done.code == 2 and len(list((place / "adapted").iterdir())) == 40
    command = done.err.rstrip().splitlines()[-1]
    assert command.endswith("--resume") and "--save-images" not in command
    again = [*IN_PIECES, "--save-images", "again", "--out", "answers.csv"]
    done = soda(*again)
    assert done.code == 2 and "continue with --resume" in done.err
    done = soda(*again, "--resume")
    assert done.code == 2 and "no --save-images" in done.err
    assert not (place / "again").exists()
    model.fails_after = None
    assert soda(*IN_PIECES, "--out", "answers.csv", "--resume").code == 0
    assert model.queries == 40


def test_a_card_and_an_adaptor_are_enough(soda: Soda, place: Path, finished_run: None) -> None:
    (place / "shipped").mkdir()
    for name in ("run.json", "adaptor.safetensors"):
        (place / "shipped" / name).write_bytes((place / "run" / name).read_bytes())
    shipped = ["shipped" if word == "run" else word for word in APPLY]
    assert soda(*shipped, "--out", "answers.csv").code == 0
    assert soda("export", "shipped", "shipped.onnx").code == 0


def test_answers_to_a_file_need_a_model(soda: Soda, place: Path, finished_run: None) -> None:
    words = shlex.split("apply --adaptor run --images night --save-images s --out a.csv")
    done = soda(*words)
    assert done.code == 2 and "need --model" in done.err and not (place / "s").exists()


def test_resume_does_not_overwrite_answers_to_other_images(
    soda: Soda, model: Any, place: Path, finished_run: None
) -> None:
    def words(images: str) -> list[str]:
        named = [images if word == "night" else word for word in IN_PIECES]
        return [*named, "--out", "a.csv"]

    model.fails_after = 25
    assert soda(*words("night")).code == 2
    model.fails_after = None
    (place / "other").mkdir()
    Image.new("RGB", (8, 8)).save(place / "other" / "one.png")
    assert soda(*words("other")).code == 0
    done = soda(*words("night"), "--resume")
    assert done.code == 2 and "holds other answers" in done.err
    assert len(rows_of(place / "a.csv")) == 1
    assert soda(*words("night"), "--resume", "--force").code == 0
    assert len(rows_of(place / "a.csv")) == 40


@pytest.mark.parametrize(
    "words",
    [
        ["export", "run", "x.onnx"],
        ["apply", "--adaptor", "run", "--images", "night", "--save-images", "d"],
    ],
)
def test_a_run_that_has_not_ended_names_resume(
    soda: Soda, model: Any, place: Path, words: list[str]
) -> None:
    model.fails_after = 60
    method = shlex.split("--method da-zoo-input --set epochs=2 --set batch=20 --out run")
    assert soda(*ADAPT, *method).code == 2
    done = soda(*words)
    assert done.code == 2 and "has not ended" in done.err and "--resume" in done.err


def test_a_model_that_does_not_exist_is_not_called_another_model(
    soda: Soda, place: Path, finished_run: None
) -> None:
    for name in ("nope.onnx", "{model}:predicts"):
        words = ["apply", "--adaptor", "run", "--images", "night", "--model", name]
        done = soda(*words, "--out", "a.csv")
        assert done.code == 2 and "not the model" not in done.err


def test_names_that_standard_output_cannot_encode_are_printed_as_the_file_has_them(
    soda: Soda, place: Path, finished_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "night" / "00.png").rename(place / "night" / "ä\udcff.png")
    assert soda(*APPLY, "--out", "answers.csv").code == 0
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, "ascii", "strict"))
    assert soda(*APPLY).code == 0
    assert printed.getvalue() == (place / "answers.csv").read_bytes()
    print("ä.html", flush=True)  # other commands print for people
    assert printed.getvalue().endswith(b"\\xe4.html\n")

"""`soda-tta apply` to a model: what was specified for the run's model is taken over, or not."""

import json
from pathlib import Path

import pytest
from onnx import TensorProto

from .conftest import MODEL, SMALL, Soda, column, rows_of

IMAGES = ["--images", "night"]
ANSWERS = ["--adaptor", "run", *IMAGES, "--out", "answers.csv"]
NOT_THE_MODEL = "not the model the adaptor was learned for"


def adapt(soda: Soda, model: str, *specified: str) -> None:
    """A run of a model, in the folder `run`."""
    done = soda("adapt", "--model", model, *IMAGES, *SMALL, "--out", "run", *specified)
    assert done.code == 0, done.err


def check_answers(place: Path) -> None:
    """The answers are those of the run."""
    after = column(place / "run" / "predictions.csv", "after")
    assert column(place / "answers.csv", "class") == after


@pytest.mark.parametrize(("function", "notice"), [("predict", False), ("other", True)])
def test_what_was_specified_need_not_be_specified_again(
    soda: Soda, place: Path, function: str, notice: bool
) -> None:
    (place / "logits.py").write_text(
        f"{MODEL.replace('def predict', 'def answer')}\n"
        "def predict(images):\n    return np.log(answer(images * 0.25 + 0.5) + 1e-9)\n"
        "def other(images):\n    return predict(images)\n"
    )
    adapt(soda, "logits.py:predict", "--logits", "--mean", "0.5", "--std", "0.25")
    file = ["run/adaptor.safetensors" if word == "run" else word for word in ANSWERS]
    done = soda("apply", *file, "--model", f"logits.py:{function}")  # the run around it is found
    assert done.code == 0 and (NOT_THE_MODEL in done.err) == notice
    check_answers(place)


@pytest.mark.parametrize("first", ["NCHW", "NHWC"])
def test_the_shapes_of_another_model_win(soda: Soda, place: Path, tiny_onnx, first: str) -> None:
    shapes = {"NCHW": ("n", 3, 8, 8), "NHWC": ("n", 8, 8, 3)}
    files = {layout: tiny_onnx(shape=shape) for layout, shape in shapes.items()}
    adapt(soda, str(files.pop(first)), "--mean", "0.1", "--std", "0.5")
    (other,) = files.values()
    done = soda("apply", *ANSWERS, "--model", str(other))
    assert done.code == 0
    assert "taken over from the run: --mean 0.1,0.1,0.1 --std 0.5,0.5,0.5" in done.err
    declared = "as the model declares and not as in the run: --layout" in done.err
    assert declared == (first == "NHWC")
    check_answers(place)


@pytest.mark.parametrize("mean", [None, [0.0, 0.0, 1.0]])
def test_a_model_of_bytes_takes_no_mean_from_a_model_of_floats(
    soda: Soda, place: Path, tiny_onnx, mean: list[float] | None
) -> None:
    facts = {"pixel_range": 255.0}
    if mean is not None:
        facts["mean"] = mean
    adapt(soda, str(tiny_onnx(facts=json.dumps(facts))))
    words = ["apply", "--adaptor", "run", *IMAGES]
    words += ["--model", str(tiny_onnx(dtype=TensorProto.UINT8))]
    assert soda(*words, "--out", "answers.csv").code == 0
    if mean is None:
        check_answers(place)
    assert soda(*words, "--out", "specified.csv", "--mean", "0", "--std", "1").code == 0
    assert rows_of(place / "answers.csv") == rows_of(place / "specified.csv")


def test_what_another_model_declares_wins(soda: Soda, place: Path, tiny_onnx) -> None:
    first, other = (
        str(tiny_onnx(facts=json.dumps({"mean": [mean, mean, 0.0], "channels": channels})))
        for mean, channels in ((9, "BGR"), (2, "RGB"))
    )
    adapt(soda, first, "--partial")
    done = soda("apply", *ANSWERS, "--model", other)
    assert done.code == 0
    assert "taken over from the run: --partial; as the model declares" in done.err
    adaptor = (place / "run" / "adaptor.safetensors").rename(place / "alone.safetensors")
    alone = ["apply", "--adaptor", str(adaptor), *IMAGES, "--model", other, "--partial"]
    assert soda(*alone, "--out", "alone.csv").code == 0  # without its run
    assert rows_of(place / "answers.csv") == rows_of(place / "alone.csv")


def test_an_edited_function_takes_over_what_was_specified(soda: Soda, place: Path) -> None:
    function = "def {name}(images):\n    {more}return predict(images.transpose(0, 3, 1, 2))\n"
    first = function.format(name="first", more="")
    edited = function.format(name="edited", more="images = images + 0; ")
    (place / "backwards.py").write_text(MODEL + first + edited)
    adapt(soda, "backwards.py:first", "--layout", "NHWC")
    done = soda("apply", *ANSWERS, "--model", "backwards.py:edited")
    assert done.code == 0 and "taken over from the run: --layout NHWC" in done.err
    check_answers(place)

"""What becomes of a run: apply, export, labels; what is paid is kept, and nothing of the user's is written over."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from onnx import TensorProto
from PIL import Image

from soda_tta.cli import main

MODEL = """
import numpy as np
weights = np.random.default_rng(7).normal(size=(3, 4))
asked, dies_after = 0, None
def predict(images):
    global asked
    if dies_after is not None and asked + len(images) > dies_after:
        raise KeyboardInterrupt if interrupted else RuntimeError("the model is gone")
    asked += len(images)
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
interrupted = False
"""
MINE = """
from soda_tta.methods import Method
class Mine(Method):
    def answer(self, given):
        {does}
mine = Mine(name="mine", summary="Of one's own.", needs="probabilities")
"""
WITH_NUMBERS = """
from dataclasses import dataclass
from soda_tta.methods import Method
@dataclass(frozen=True, kw_only=True)
class Mine(Method):
    steps: int = 3
    average: int = 3
    def answer(self, given):
        return given.before[:, ::-1]
mine = Mine(name="mine", summary="Of one's own.", needs="probabilities")
"""
ADAPT = ["adapt", "--model", "{model}:predict", "--images", "night"]
SMALL = [
    "--method",
    "soda",
    "--set",
    "epochs=2",
    "--set",
    "batch=16",
    "--set",
    "width=4",
    "--set",
    "lr=0.05",
]


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    name = f"model_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MODEL)
    (tmp_path / "night").mkdir()
    for number in range(40):
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "night" / f"{number:02}.png")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def model(place):
    import importlib

    return importlib.import_module(f"model_{place.name}".replace("-", "_"))


@pytest.fixture
def soda(model, capsys):
    def run(*words: str) -> tuple[int, str, str]:
        code = main([word.format(model=model.__name__) for word in words])
        return code, *capsys.readouterr()

    return run


def rows_of(path: Path) -> list[dict]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("interrupted", [False, True])
def test_answers_that_were_paid_outlive_the_model(soda, model, place, interrupted: bool) -> None:
    assert soda(*ADAPT, *SMALL, "--out", "run")[0] == 0
    words = [
        "apply",
        "--adaptor",
        "run",
        "--model",
        "{model}:predict",
        "--images",
        "night",
        "--request-size",
        "10",
    ]
    words.append("--out")
    assert soda(*words, "whole.csv")[0] == 0
    model.asked, model.dies_after, model.interrupted = 0, 25, interrupted
    code, _, said = soda(*words, "answers.csv")
    assert code == (130 if interrupted else 2)
    assert "What was answered before is kept" in said and said.rstrip().endswith("--resume")
    model.dies_after = None
    code, _, said = soda(*words, "answers.csv")
    assert code == 2 and "go on with --resume, or remove it" in said and model.asked == 20
    first = place / "night" / "00.png"
    pixels = first.read_bytes()
    Image.new("RGB", (8, 8)).save(first)  # other images of the same names
    code, _, said = soda(*words, "answers.csv", "--resume")
    assert code == 2 and "nothing of these images" in said and model.asked == 20
    first.write_bytes(pixels)
    code, _, said = soda(
        *words, "answers.csv", "--resume", "--mean", "0.1"
    )  # or a model that is told something else
    assert code == 2 and "nothing of these images" in said and model.asked == 20
    code, _, said = soda(*words, "answers.csv", "--resume")
    assert (
        code == 0 and "40 answers, 50 queries" in said
    )  # the ten that died were on their way: they count
    assert model.asked == 40  # none twice
    assert rows_of(place / "answers.csv") == rows_of(place / "whole.csv")
    assert not list(place.glob("*.partial*"))
    code, _, said = soda(*words, "answers.csv", "--resume")
    assert code == 2 and "nothing of these images" in said


def test_the_same_answers_are_not_paid_twice_at_once(soda, model, place, monkeypatch) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    words = [
        "apply",
        "--adaptor",
        "run",
        "--model",
        "{model}:predict",
        "--images",
        "night",
        "--out",
        "answers.csv",
    ]
    predict, second = model.predict, []

    def meanwhile(images):
        if not second:
            second.extend([None, *(soda(*words, *more) for more in ([], ["--resume"]))])
        return predict(images)

    monkeypatch.setattr(model, "predict", meanwhile)
    model.asked = 0
    assert soda(*words)[0] == 0
    assert model.asked == 40 and len(rows_of(place / "answers.csv")) == 40
    assert all(
        code == 2 and "another process is getting these answers" in said
        for code, _, said in second[1:]
    )
    code, _, said = soda(*words)  # and afterwards the place is free, but for the answers
    assert code == 2 and "add --force" in said and model.asked == 40
    assert soda(*words, "--force")[0] == 0


@pytest.mark.parametrize("out", ["file/answers.csv", "/proc/answers.csv", "."])
def test_answers_that_can_go_nowhere_are_not_asked_for(soda, model, place, out: str) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    (place / "file").write_text("")
    model.asked = 0
    code, _, said = soda(
        "apply", "--adaptor", "run", "--model", "{model}:predict", "--images", "night", "--out", out
    )
    assert code == 2 and "--out" in said and "not your doing" not in said and not model.asked


def test_what_cannot_be_continued_is_not_said_to_be(soda, model, place) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    words = [
        "apply",
        "--adaptor",
        "run",
        "--model",
        "{model}:predict",
        "--images",
        "night",
        "--out",
        "answers.csv",
    ]
    model.asked, model.dies_after = 0, 0
    code, _, said = soda(*words)
    assert code == 2 and "the model is gone" in said and "--resume" not in said
    assert not list(place.glob("*.partial*"))


def test_images_are_saved_before_the_first_query_and_not_again(soda, model, place) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    words = [
        "apply",
        "--adaptor",
        "run",
        "--model",
        "{model}:predict",
        "--images",
        "night",
        "--request-size",
        "10",
    ]
    model.asked, model.dies_after = 0, 25
    code, _, said = soda(*words, "--save-images", "adapted", "--out", "answers.csv")
    assert code == 2 and len(list((place / "adapted").iterdir())) == 40
    told = said.rstrip().splitlines()[-1]
    assert told.endswith("--resume") and "--save-images" not in told
    code, _, said = soda(*words, "--save-images", "again", "--out", "answers.csv")
    assert code == 2 and "leave --save-images out" in said and not (place / "again").exists()
    model.dies_after = None
    assert soda(*words, "--out", "answers.csv", "--resume")[0] == 0 and model.asked == 40


def test_a_place_that_cannot_be_written_costs_nothing(soda, model, place) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    model.asked = 0
    code, _, said = soda(
        "apply",
        "--adaptor",
        "run",
        "--model",
        "{model}:predict",
        "--images",
        "night",
        "--out",
        "run",
    )
    assert code == 2 and "is a directory" in said and model.asked == 0


def test_a_card_and_an_adaptor_are_enough_to_apply(soda, place) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    (place / "shipped").mkdir()
    for name in ("run.json", "adaptor.safetensors"):
        (place / "shipped" / name).write_bytes((place / "run" / name).read_bytes())
    words = [
        "apply",
        "--adaptor",
        "shipped",
        "--model",
        "{model}:predict",
        "--images",
        "night",
        "--out",
        "answers.csv",
    ]
    assert soda(*words)[0] == 0 and soda("export", "shipped", "shipped.onnx")[0] == 0


def test_images_alone_are_saved_with_a_word(soda) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    code, _, said = soda(
        "apply", "--adaptor", "run", "--images", "night", "--save-images", "adapted"
    )
    assert code == 0 and "40 adapted images -> adapted" in said


def test_export_writes_over_nothing_unless_told_to(soda, place) -> None:
    soda(*ADAPT, *SMALL, "--out", "run")
    (place / "model.onnx").write_bytes(b"the user's own")
    code, _, said = soda("export", "run", "model.onnx")
    assert (
        code == 2 and "--force" in said and (place / "model.onnx").read_bytes() == b"the user's own"
    )
    assert soda("export", "run", "model.onnx", "--force")[0] == 0
    assert (place / "model.onnx").stat().st_size > 100


def test_a_run_without_an_adaptor_is_not_applied_as_if_it_had_one(soda) -> None:
    assert soda(*ADAPT, "--method", "lame", "--out", "lame")[0] == 0
    for words in (
        ["export", "lame", "x.onnx"],
        ["apply", "--adaptor", "lame", "--images", "night", "--save-images", "x"],
    ):
        code, _, said = soda(*words)
        assert code == 2 and "left no adaptor that gives its answers" in said
    soda(*ADAPT, "--method", "deployed", "--out", "kept")
    code, _, said = soda("export", "kept", "kept.onnx")
    assert code == 0 and "leaves images as they are" in said


def test_averaged_answers_are_not_what_apply_gives_and_it_says_so(soda) -> None:
    soda(*ADAPT, *SMALL, "--set", "average=true", "--out", "run")
    assert "averaged" in soda("export", "run", "x.onnx")[2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "missing.csv"),
        ("00.png,0\n", "file,label"),
        ("file,label\nother.png,0\n", "no label belongs"),
    ],
)
def test_labels_are_looked_at_before_anything_is_paid(soda, model, place, text, says: str) -> None:
    labels = "missing.csv"
    if text is not None:
        (place / (labels := "labels.csv")).write_text(text)
    for more in ([], ["--dry-run"]):
        code, _, said = soda(*ADAPT, *SMALL, "--out", "run", "--labels", labels, *more)
        assert code == 2 and says in said
    assert model.asked == 0 and not (place / "run").exists()


def test_labels_that_do_not_fit_the_model_leave_the_run_and_say_so(soda, place) -> None:
    (place / "labels.csv").write_text("file,label\n00.png,99\n")
    code, told, said = soda(*ADAPT, *SMALL, "--out", "run", "--labels", "labels.csv")
    assert code == 2 and "label 99" in said and "soda-tta report run --labels labels.csv" in said
    assert "answers changed" in told


def test_labels_by_name_need_the_models_names_before_anything_is_paid(soda, place) -> None:
    (place / "labels.csv").write_text(
        "file,label\n" + "".join(f"{i:02}.png,{'ab'[i % 2]}\n" for i in range(40))
    )
    (place / "classes.txt").write_text("a\nb\nc\nd\n")
    words = [*ADAPT, *SMALL, "--labels", "labels.csv", "--json"]
    code, _, said = soda(*words, "--out", "run")
    assert (
        code == 2 and "--classes FILE" in said and not (place / "run").exists()
    )  # before anything is paid
    code, told, _ = soda(*words, "--out", "run", "--classes", "classes.txt")
    assert code == 0 and "certificate" in json.loads(told)
    (place / "late.csv").write_text(
        "file,label\n00.png,9\n"
    )  # how many classes there are is known only afterwards
    words[words.index("labels.csv")] = "late.csv"
    code, told, said = soda(*words, "--out", "late")
    assert (
        code == 2
        and "label 9 is none" in said
        and "label 9 is none" in json.loads(told)["certificate_error"]
    )
    words[words.index("late.csv")] = "labels.csv"
    (place / "classes.txt").write_text("a\nc\n")
    code, _, said = soda(*words, "--out", "other", "--classes", "classes.txt")
    assert (
        code == 2 and "'b' is none of the 2 class names" in said and not (place / "other").exists()
    )
    assert soda(*ADAPT, "--out", "other", "--classes", "classes.txt")[0] == 2


def test_the_summary_knows_that_there_are_labels(soda, place) -> None:
    (place / "labels.csv").write_text(
        "file,label\n" + "".join(f"{i:02}.png,{i % 4}\n" for i in range(40))
    )
    _, told, _ = soda(*ADAPT, *SMALL, "--out", "run", "--labels", "labels.csv")
    assert (
        "labels would tell" not in told
        and "--labels labels.csv" in told
        and "On 40 labelled images" in told
    )


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("raise ValueError('a slip')", "mine raised ValueError: a slip (.*mine_.*py:5)"),
        ("return given.before[:5]", r"array of \(5, 4\)"),
        ("pass", "mine gave no answers"),
        ("return given.before * float('nan')", "NaN or negative"),
        ("return [['x'] * 4] * 40", "no array of numbers"),
        (
            "import numpy; return numpy.linalg.inv(numpy.zeros((2, 2)))",
            r"mine raised LinAlgError.*mine_.*py:5",
        ),
        (
            "return [given.box(given.images[slice(0, 40)]) for _ in range(9)][0]",
            "would exceed the limit of 200",
        ),
    ],
)
def test_mistakes_in_a_method_of_ones_own_are_told_as_such(
    soda, model, place, does: str, says: str
) -> None:
    import re

    name = f"mine_{place.name}".replace("-", "_")
    (place / f"{name}.py").write_text(MINE.format(does=does))
    code, _, said = soda(*ADAPT, "--method", f"{name}:mine", "--budget", "5", "--out", "run")
    assert code == 2 and re.search(says, said), said
    assert "--resume" not in said and model.asked <= 200


def test_what_a_method_of_ones_own_asks_is_counted(soda, model, place) -> None:
    name = f"mine_{place.name}".replace("-", "_")
    (place / f"{name}.py").write_text(
        MINE.format(does="return given.box(given.images[slice(0, 40)])")
    )
    code, told, _ = soda(
        *ADAPT, "--method", f"{name}:mine", "--budget", "5", "--out", "run", "--json"
    )
    assert (
        code == 0
        and json.loads(told)["queries"] == {"select": 40, "probe": 40}
        and model.asked == 80
    )


@pytest.mark.parametrize(
    "text", ["def mine(:", "mine = unknown", "raise RuntimeError('a slip')", "import nowhere"]
)
def test_a_file_of_ones_own_that_cannot_be_loaded_is_told_as_such(soda, place, text: str) -> None:
    name = f"broken_{place.name}".replace("-", "_")
    (place / f"{name}.py").write_text(text)
    code, _, said = soda("methods", f"{name}:mine")
    assert code == 2 and f"'{name}:mine' could not be loaded" in said


def test_numbers_of_a_method_of_ones_own_are_not_explained_by_ours(soda, model, place) -> None:
    name = f"own_{place.name}".replace("-", "_")
    (place / f"{name}.py").write_text(WITH_NUMBERS)
    _, told, _ = soda("methods", f"{name}:mine", "--json")
    (row,) = json.loads(told)
    assert row["meanings"] == {**dict.fromkeys(row["settings"], ""), "epochs": ANY, "batch": ANY}
    assert soda(*ADAPT, "--method", f"{name}:mine", "--out", "run")[0] == 0
    rows = list(csv.DictReader((place / "run" / "predictions.csv").open()))
    assert any(
        row["before"] != row["after"] for row in rows
    )  # its answers are its own: `average` is a word of ours


def test_methods_tells_the_numbers_of_one(soda) -> None:
    assert "soda-tta methods NAME" in soda("methods")[1]
    told = soda("methods", "soda")[1]
    assert "alpha" in told and "0.0001" in told and "soda-e" not in told
    assert soda("methods", "sodda")[0] == 2


@pytest.mark.parametrize("first", ["NCHW", "NHWC"])
def test_another_models_own_shapes_are_not_overruled(soda, place, tiny_onnx, first: str) -> None:
    shapes = {"NCHW": ("n", 3, 8, 8), "NHWC": ("n", 8, 8, 3)}
    files = {layout: tiny_onnx(shape=shape) for layout, shape in shapes.items()}
    images = ["--images", "night"]
    words = ["adapt", "--model", str(files.pop(first)), *images, *SMALL, "--out", "run"]
    assert soda(*words, "--mean", "0.1", "--std", "0.5")[0] == 0
    ((_, other),) = files.items()
    code, _, said = soda(
        "apply", "--adaptor", "run", "--model", str(other), *images, "--out", "answers.csv"
    )
    assert code == 0 and "taken over from the run: --mean 0.1,0.1,0.1 --std 0.5,0.5,0.5" in said
    assert ("as the model says itself and not as in the run: --layout" in said) == (first == "NHWC")
    after = [row["after"] for row in rows_of(place / "run" / "predictions.csv")]
    assert [row["class"] for row in rows_of(place / "answers.csv")] == after


@pytest.mark.parametrize("mean", [None, [0.0, 0.0, 1.0]])
def test_bytes_stay_bytes_for_a_model_that_takes_them(soda, place, tiny_onnx, mean) -> None:
    floats = tiny_onnx(facts=json.dumps({"pixel_range": 255.0, **({"mean": mean} if mean else {})}))
    assert (
        soda("adapt", "--model", str(floats), "--images", "night", *SMALL, "--out", "run")[0] == 0
    )
    words = [
        "apply",
        "--adaptor",
        "run",
        "--model",
        str(tiny_onnx(dtype=TensorProto.UINT8)),
        "--images",
        "night",
    ]
    assert soda(*words, "--out", "answers.csv")[0] == 0
    pairs = zip(
        rows_of(place / "run" / "predictions.csv"), rows_of(place / "answers.csv"), strict=True
    )
    assert mean or all(one["after"] == two["class"] for one, two in pairs)
    assert (
        soda(*words[:-2], "--images", "night", "--out", "told.csv", "--mean", "0", "--std", "1")[0]
        == 0
    )
    assert rows_of(place / "answers.csv") == rows_of(
        place / "told.csv"
    )  # a mean of other pixels is not taken over


def test_what_another_file_says_of_itself_is_not_overruled(soda, place, tiny_onnx) -> None:
    first, other = (
        tiny_onnx(facts=json.dumps({"mean": [m, m, 0.0], "channels": c}))
        for m, c in ((9, "BGR"), (2, "RGB"))
    )
    assert (
        soda(
            "adapt", "--model", str(first), "--images", "night", *SMALL, "--out", "run", "--partial"
        )[0]
        == 0
    )
    apply = ["apply", "--model", str(other), "--images", "night"]
    code, _, said = soda(*apply, "--adaptor", "run", "--out", "answers.csv")
    assert code == 0 and "taken over from the run: --partial; as the model says itself" in said
    adaptor = (place / "run" / "adaptor.safetensors").rename(place / "alone.safetensors")
    assert (
        soda(*apply, "--adaptor", str(adaptor), "--partial", "--out", "alone.csv")[0] == 0
    )  # without its run
    assert rows_of(place / "answers.csv") == rows_of(place / "alone.csv")


def test_an_edited_function_is_told_what_the_one_before_it_was(soda, place) -> None:
    lines = "def {name}(images):\n    {more}return predict(images.transpose(0, 3, 1, 2))\n"
    source = (
        MODEL
        + lines.format(name="first", more="")
        + lines.format(name="edited", more="images = images + 0; ")
    )
    (place / "backwards.py").write_text(source)
    told = ["--model", "backwards.py:first", "--layout", "NHWC"]
    assert soda("adapt", *told, "--images", "night", *SMALL, "--out", "run")[0] == 0
    words = [
        "apply",
        "--adaptor",
        "run",
        "--images",
        "night",
        "--model",
        "backwards.py:edited",
        "--out",
        "answers.csv",
    ]
    code, _, said = soda(*words)
    assert code == 0 and "taken over from the run: --layout NHWC" in said
    after = [row["after"] for row in rows_of(place / "run" / "predictions.csv")]
    assert [row["class"] for row in rows_of(place / "answers.csv")] == after


def test_a_model_whose_file_was_edited_is_another_one(soda, place) -> None:
    source = "SCALE = 1.0\n" + MODEL.replace("8 * (", "SCALE * 8 * (")
    (place / "scaled.py").write_text(source)
    adapt = ["adapt", "--model", "scaled.py:predict", "--images", "night", *SMALL, "--out", "run"]
    assert soda(*adapt)[0] == 0
    (place / "scaled.py").write_text(
        source.replace("SCALE = 1.0", "SCALE = -1.0")
    )  # the function itself is the same
    code, _, said = soda(*adapt, "--resume")
    assert code == 2 and "another run" in said
    words = [
        "apply",
        "--adaptor",
        "run",
        "--images",
        "night",
        "--model",
        "scaled.py:predict",
        "--out",
        "a.csv",
    ]
    assert "not the model the adaptor was learnt for" in soda(*words)[2]


def test_a_run_that_is_not_there_is_not_resumed(soda, model, place) -> None:
    model.asked = 0
    code, _, said = soda(*ADAPT, *SMALL, "--out", "typo", "--resume")
    assert (
        code == 2
        and "no run in typo" in said
        and model.asked == 0
        and not (place / "typo").exists()
    )


def test_answers_to_a_file_need_a_model(soda, place) -> None:
    assert soda(*ADAPT, *SMALL, "--out", "run")[0] == 0
    code, _, said = soda(
        "apply", "--adaptor", "run", "--images", "night", "--save-images", "s", "--out", "a.csv"
    )
    assert code == 2 and "need --model" in said and not (place / "s").exists()


def test_a_full_disk_is_not_called_our_mistake(place) -> None:
    words = [sys.executable, "-m", "soda_tta", "methods"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and done.stderr.strip().endswith(
        "no room left where this was to be written; make some."
    )


def test_a_model_that_is_not_there_is_not_called_another_one(soda, place) -> None:
    assert soda(*ADAPT, *SMALL, "--out", "run")[0] == 0
    for model in ("nope.onnx", "{model}:predicts"):
        code, _, said = soda(
            "apply", "--adaptor", "run", "--images", "night", "--model", model, "--out", "a.csv"
        )
        assert code == 2 and "not the model" not in said


def test_answers_of_other_images_are_not_written_over_by_a_resume(soda, model, place) -> None:
    assert soda(*ADAPT, *SMALL, "--out", "run")[0] == 0
    words = [
        "apply",
        "--adaptor",
        "run",
        "--model",
        "{model}:predict",
        "--request-size",
        "10",
        "--out",
        "a.csv",
    ]
    model.asked, model.dies_after = 0, 25
    assert soda(*words, "--images", "night")[0] == 2
    model.dies_after = None
    (place / "other").mkdir()
    Image.new("RGB", (8, 8)).save(place / "other" / "one.png")
    assert soda(*words, "--images", "other")[0] == 0
    code, _, said = soda(*words, "--images", "night", "--resume")
    assert code == 2 and "holds other answers" in said and len(rows_of(place / "a.csv")) == 1
    assert soda(*words, "--images", "night", "--resume", "--force")[0] == 0
    assert len(rows_of(place / "a.csv")) == 40


def test_a_run_that_has_not_ended_says_so_where_its_adaptor_is_wanted(soda, model, place) -> None:
    model.asked, model.dies_after, model.interrupted = 0, 60, False
    assert (
        soda(
            *ADAPT,
            "--method",
            "da-zoo-input",
            "--set",
            "epochs=2",
            "--set",
            "batch=20",
            "--out",
            "run",
        )[0]
        == 2
    )
    for words in (
        ["export", "run", "x.onnx"],
        ["apply", "--adaptor", "run", "--images", "night", "--save-images", "d"],
    ):
        code, _, said = soda(*words)
        assert code == 2 and "has not ended" in said and "--resume" in said


def test_a_size_is_one_number_or_two(soda, place) -> None:
    for text, code in (("8", 0), ("8x6", 0), ("8x", 2), ("x8", 2), ("8x6x4", 2)):
        try:
            assert soda(*ADAPT, "--dry-run", "--size", text)[0] == code
        except SystemExit as error:
            assert error.code == code == 2

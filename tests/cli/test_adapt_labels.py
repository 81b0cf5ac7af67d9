"""`soda-tta adapt --labels`: labels are checked before the first query and used after the last."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import ADAPT, SMALL, Soda


def write_labels(path: Path, names: list[str]) -> None:
    """Write the label of each of the 40 images."""
    rows = [f"{number:02}.png,{name}\n" for number, name in enumerate(names)]
    path.write_text("file,label\n" + "".join(rows))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "missing.csv"),
        ("00.png,0\n", "file,label"),
        ("file,label\nother.png,0\n", "none of the labels belongs"),
    ],
)
def test_labels_are_checked_before_the_first_query(
    soda: Soda, model: Any, place: Path, text: str | None, message: str
) -> None:
    labels = "missing.csv"
    if text is not None:
        labels = "labels.csv"
        (place / labels).write_text(text)
    for more in ([], ["--dry-run"]):
        done = soda(*ADAPT, *SMALL, "--out", "run", "--labels", labels, *more)
        assert done.code == 2 and message in done.err
    assert model.queries == 0 and not (place / "run").exists()


def test_labels_that_do_not_fit_the_model_do_not_harm_the_run(soda: Soda, place: Path) -> None:
    (place / "labels.csv").write_text("file,label\n00.png,99\n")
    done = soda(*ADAPT, *SMALL, "--out", "run", "--labels", "labels.csv")
    assert done.code == 2 and "label 99" in done.err
    assert "soda-tta report run --labels labels.csv" in done.err
    assert "answers changed" in done.out


def test_labels_by_name_need_the_names_of_the_models_classes(soda: Soda, place: Path) -> None:
    write_labels(place / "labels.csv", ["a", "b"] * 20)
    (place / "classes.txt").write_text("a\nb\nc\nd\n")
    words = [*ADAPT, *SMALL, "--labels", "labels.csv", "--json"]
    done = soda(*words, "--out", "run")
    assert done.code == 2 and "--classes names.txt" in done.err
    assert not (place / "run").exists()
    done = soda(*words, "--out", "run", "--classes", "classes.txt")
    assert done.code == 0 and "certificate" in json.loads(done.out)


def test_a_label_beyond_the_models_classes_is_also_in_the_json(soda: Soda, place: Path) -> None:
    (place / "late.csv").write_text("file,label\n00.png,9\n")  # known only after the run
    done = soda(*ADAPT, *SMALL, "--labels", "late.csv", "--json", "--out", "late")
    assert done.code == 2 and "label 9 is" in done.err
    assert "label 9 is" in json.loads(done.out)["certificate_error"]


def test_class_names_must_include_every_label_and_need_labels(soda: Soda, place: Path) -> None:
    write_labels(place / "labels.csv", ["a", "b"] * 20)
    (place / "classes.txt").write_text("a\nc\n")
    words = [*ADAPT, *SMALL, "--out", "other", "--classes", "classes.txt"]
    done = soda(*words, "--labels", "labels.csv")
    assert done.code == 2 and "'b' is" in done.err and "2 class names" in done.err
    assert not (place / "other").exists()
    done = soda(*words)
    assert done.code == 2 and "give --labels too" in done.err


def test_the_summary_does_not_ask_for_labels_that_it_has(soda: Soda, place: Path) -> None:
    write_labels(place / "labels.csv", [str(number % 4) for number in range(40)])
    text = soda(*ADAPT, *SMALL, "--out", "run", "--labels", "labels.csv").out
    assert "or labels:" not in text
    assert "--labels labels.csv" in text and "On 40 labelled images" in text
    assert "or labels: soda-tta report --labels" in soda(*ADAPT, *SMALL, "--out", "without").out

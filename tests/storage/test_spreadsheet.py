"""A spreadsheet that opens our CSV files computes nothing."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta import adapt, apply
from soda_tta.adaptors import Identity
from soda_tta.data import write as written
from soda_tta.data.load import load_dataset
from soda_tta.report.labels import read_labels
from soda_tta.storage.spreadsheet import as_cell, from_cell, write_predictions
from soda_tta.storage.stored_run import read_run_folder

FORMULAS = ["=1+1.png", "+1+cmd.png", "-2+3.png", "@SUM(1).png", "\t=1.png"]


@settings(max_examples=50, deadline=None)
@given(st.text().filter(lambda name: not name.startswith("./")))
def test_every_name_is_read_back_and_none_is_a_formula(name: str) -> None:
    cell = as_cell(name)
    assert from_cell(cell) == name
    assert not cell.startswith(("=", "@", "\t", "\r"))


@pytest.mark.parametrize("name", FORMULAS)
def test_predictions_and_answers_name_the_same_file(name: str) -> None:
    text = io.StringIO()
    rows = np.array([[0.5, 0.5]], np.float32)
    write_predictions(text, [name], rows, rows)
    text.seek(0)
    cell = next(csv.DictReader(text))["image"]
    assert cell == f"./{name}" and Path(cell) == Path(name)


def a_folder(place: Path) -> Path:
    from PIL import Image

    (place / "odd").mkdir()
    for number, name in enumerate(FORMULAS[:4]):
        Image.new("RGB", (16, 16), (60 * number, 0, 0)).save(place / "odd" / name)
    return place / "odd"


def test_a_run_on_files_with_such_names_is_read_and_labelled_by_its_own_table(
    tmp_path: Path,
) -> None:
    folder = a_folder(tmp_path)
    run = adapt(folder, model, method="deployed", out=tmp_path / "run")
    assert read_run_folder(tmp_path / "run").names == run.names == sorted(FORMULAS[:4])
    answers = apply(Identity(), folder, model)
    (tmp_path / "answers.csv").write_text(answers.csv())
    labels = read_labels(tmp_path / "answers.csv", run.names, None, 2)
    np.testing.assert_array_equal(labels.values, answers.predictions)


def test_a_corrupted_copy_with_such_classes_is_read_again(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    (folder / "labels.csv").write_text("file,label\n" + "".join(f"{n},=c\n" for n in FORMULAS[:4]))
    dataset = load_dataset(folder)
    written.write_corrupted(dataset, tmp_path / "copy", ["contrast"], [3])
    lines = (tmp_path / "copy" / "labels.csv").read_text().splitlines()[1:]
    assert all(line.startswith("./") and line.endswith(",./=c") for line in lines)
    assert load_dataset(tmp_path / "copy").classes == ("=c",)


def model(images: np.ndarray) -> np.ndarray:
    share = images.mean(axis=(1, 2, 3))
    return np.stack([share, 1 - share], axis=1)

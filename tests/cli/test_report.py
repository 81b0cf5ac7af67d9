"""`soda-tta report`: the page it writes, its JSON, and its errors."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from .conftest import Soda, rows_of

pytestmark = pytest.mark.usefixtures("finished_run")


@pytest.fixture
def labels(place: Path, finished_run: None) -> str:
    """Labels of all images, with which every prediction before adapting is correct."""
    rows = rows_of(place / "run" / "predictions.csv")
    lines = [f"{row['image']},{row['before']}\n" for row in rows]
    (place / "labels.csv").write_text("file,label\n" + "".join(lines))
    return "labels.csv"


def test_the_report_is_written_into_the_run_folder(soda: Soda, place: Path) -> None:
    done = soda("report", "run")
    assert done.code == 0 and done.err == ""
    assert "run/report.html" in done.out and "560 queries" in done.out
    assert "<svg" in (place / "run" / "report.html").read_text()


def test_json_contains_the_labels_images_and_price(soda: Soda, place: Path, labels: str) -> None:
    words = f"--images night --labels {labels} --price 2 --out page.html --json"
    done = soda("report", "run", *shlex.split(words))
    facts = json.loads(done.out)
    assert facts["page"] == "page.html" and facts["cost"] == pytest.approx(1.12)
    assert facts["accuracy"]["images"] == 40 and facts["accuracy"]["before"]["value"] == 1
    assert "<img" in (place / "page.html").read_text()


def test_several_runs_are_compared(soda: Soda, place: Path) -> None:
    shutil.copytree(place / "run", place / "other")
    done = soda("report", "run", "other")
    assert done.code == 0 and "compared.html" in done.out
    assert "2 runs side by side" in (place / "compared.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "nowhere"], "run.json"),
        (["report", "run", "--labels", "night/00.png"], "00.png"),
        (["report", "run", "--images", "nowhere"], "does not exist"),
        (["report", "run", "--classes", "nowhere"], "cannot be read as class names"),
        (["report"], "required: RUN"),
        (["report", "run", "--price", "-3"], "price"),
        (["report", "run", "--out", "run"], "could not be written"),
    ],
)
def test_an_error_is_one_line(soda: Soda, words: list[str], message: str) -> None:
    done = soda(*words)
    assert done.code == 2 and message in done.err
    assert done.err.count("\n") == 1 and done.err.startswith("soda-tta")


def test_names_without_class_names_are_refused_with_the_flag(soda: Soda, place: Path) -> None:
    (place / "names.csv").write_text("file,label\n00.png,cat\n")
    done = soda("report", "run", "--labels", "names.csv")
    assert done.code == 2 and "--classes names.txt" in done.err

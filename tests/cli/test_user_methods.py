"""A method from a file of the user: mistakes are reported as such, queries are counted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import ADAPT, Soda, rows_of, unique

METHOD = """
from soda_tta.methods import Method
class Mine(Method):
    def answer(self, work):
        {body}
mine = Mine(name="mine", summary="A method of the user.", needs="probabilities")
"""
WITH_SETTINGS = """
from dataclasses import dataclass
from soda_tta.methods import Method
@dataclass(frozen=True, kw_only=True)
class Mine(Method):
    steps: int = 3
    average: int = 3
    def answer(self, work):
        return work.before[:, ::-1]
mine = Mine(name="mine", summary="A method of the user.", needs="probabilities")
"""


def write_method(place: Path, text: str) -> str:
    """Write a module with the method `mine`; returns its reference."""
    name = unique("mine", place)
    (place / f"{name}.py").write_text(text)
    return f"{name}:mine"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('a slip')", "mine raised ValueError: a slip (.*mine_.*py:5)"),
        ("return work.before[:5]", r"\(5, 4\)"),
        ("pass", "mine returned"),
        ("return work.before * float('nan')", "NaN or negative"),
        ("return [['x'] * 4] * 40", "array of numbers"),
        (
            "import numpy; return numpy.linalg.inv(numpy.zeros((2, 2)))",
            r"mine raised LinAlgError.*mine_.*py:5",
        ),
        (
            "return [work.box(work.images[slice(0, 40)]) for _ in range(9)][0]",
            "would exceed the limit of 200",
        ),
    ],
)
def test_a_mistake_in_a_method_is_reported_as_such(
    soda: Soda, model: Any, place: Path, body: str, message: str
) -> None:
    method = write_method(place, METHOD.format(body=body))
    done = soda(*ADAPT, "--method", method, "--budget", "5", "--out", "run")
    assert done.code == 2 and re.search(message, done.err), done.err
    assert "--resume" not in done.err and model.queries <= 200


def test_the_queries_of_a_method_are_counted(soda: Soda, model: Any, place: Path) -> None:
    body = "return work.box(work.images[slice(0, 40)])"
    method = write_method(place, METHOD.format(body=body))
    done = soda(*ADAPT, "--method", method, "--budget", "5", "--out", "run", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["queries"] == {"select": 40, "probe": 40}
    assert model.queries == 80


@pytest.mark.parametrize(
    "text", ["def mine(:", "mine = unknown", "raise RuntimeError('a slip')", "import nowhere"]
)
def test_a_file_that_cannot_be_loaded_is_reported(soda: Soda, place: Path, text: str) -> None:
    method = write_method(place, text)
    done = soda("methods", method)
    assert done.code == 2 and method.removesuffix(":mine") in done.err
    assert "cannot be imported" in done.err and "bug" not in done.err


def test_settings_of_a_method_are_not_explained_by_ours(soda: Soda, place: Path) -> None:
    method = write_method(place, WITH_SETTINGS)
    (row,) = json.loads(soda("methods", method, "--json").out)
    assert row["settings"] == {"steps": 3, "average": 3}
    assert row["meanings"] == {"steps": "", "average": ""}
    assert soda(*ADAPT, "--method", method, "--out", "run").code == 0
    # its answers are its own: `average` is a setting of ours
    rows = rows_of(place / "run" / "predictions.csv")
    assert any(row["before"] != row["after"] for row in rows)

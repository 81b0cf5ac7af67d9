"""`soda-tta methods`: what every method needs, costs and can be set to."""

import json
import subprocess
import sys

from .conftest import Soda


def test_the_list_shows_needs_and_costs(soda: Soda) -> None:
    text = soda("methods").out
    assert "soda-auto" in text and "902" in text
    assert "soda-tta methods NAME" in text
    rows = json.loads(soda("methods", "--json").out)
    assert {"deployed", "soda"} <= {row["name"] for row in rows}


def test_one_method_shows_its_settings(soda: Soda) -> None:
    text = soda("methods", "soda").out
    assert "alpha" in text and "0.0001" in text and "soda-e" not in text
    assert "for 10,000 images and without a budget" in text
    (row,) = json.loads(soda("methods", "soda", "--json").out)
    assert row["settings"]["alpha"] == 0.0001 and row["meanings"]["alpha"]


def test_an_unknown_method_lists_those_that_exist(soda: Soda) -> None:
    done = soda("methods", "sodda")
    assert done.code == 2 and "choose one of" in done.err


def test_python_runs_the_package_as_the_command() -> None:
    command = [sys.executable, "-m", "soda_tta", "methods", "soda"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "directions (q)" in text

"""Pinned outputs: what runs compute stays as it is unless a commit says otherwise."""

import importlib.util
import json
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("cases", Path(__file__).parent / "cases.py")
cases = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(cases)
PINNED = json.loads(cases.OUTPUTS.read_text())
TOLERANCE = 2e-3  # other processors round otherwise, and training amplifies that


def same(found, pinned) -> None:
    if isinstance(pinned, dict):
        assert found.keys() == pinned.keys()
        for name in pinned:
            same(found[name], pinned[name])
    elif isinstance(pinned, list):
        assert found == pytest.approx(pinned, abs=TOLERANCE, rel=TOLERANCE)
    else:
        assert found == pinned


@pytest.mark.parametrize("name", list(cases.CASES))
def test_a_run_computes_what_it_did(name: str) -> None:
    same(cases.run_case(name), PINNED[name])


def test_a_stream_computes_what_it_did() -> None:
    same(cases.run_stream(), PINNED["stream"])

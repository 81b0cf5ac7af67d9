"""The reference pages are what the code says."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


def pages() -> dict:
    """The generator's table of pages."""
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PAGES


@pytest.mark.parametrize("name", ["methods.md", "model-facts.md", "commands.md"])
def test_a_page_is_up_to_date(name: str) -> None:
    expected = pages()[name]()
    assert (FOLDER / name).read_text() == expected, "run python docs/reference/generate.py"

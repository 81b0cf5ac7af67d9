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


PAGES = (
    "methods.md",
    "model-facts.md",
    "commands.md",
    "api.md",
    "parts.md",
    "errors.md",
    "files.md",
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    assert set(pages()) == set(PAGES)
    expected = pages()[name]()
    assert (FOLDER / name).read_text() == expected, "run python docs/reference/generate.py"

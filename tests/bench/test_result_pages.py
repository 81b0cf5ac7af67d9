"""The tables of research pages match the stored results."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


PAGES = {
    "scenes": "scenes",
    "few_images": "scenes",
    "conventions": "conventions",
    "convention_objectives": "conventions",
    "conditions": "conditions",
    "pool": "performance",
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_holds_the_table_of_the_stored_results(name: str, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)
    table = script.table(json.loads(script.OUT.read_text()))
    assert table in (ROOT / "docs" / "research" / f"{PAGES[name]}.md").read_text()

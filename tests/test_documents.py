"""Examples in the documents and docstrings run and are true."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import soda_tta

ROOT = Path(__file__).parents[1]
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(soda_tta.__path__, "soda_tta.")
    if ".cli" not in name
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.filterwarnings("ignore")
def test_the_readmes_python_example_runs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    examples = [block for block in blocks if ">>>" in block]
    assert examples
    for block in examples:
        test = doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert runner.run(test).failed == 0


def test_every_link_to_a_file_of_the_repository_leads_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} -> {target}"

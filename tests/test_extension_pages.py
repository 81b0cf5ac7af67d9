"""The code of the pages that explain how to extend the package runs, top to bottom."""

import re
import runpy
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "how-to").glob("add-a*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_the_page_runs(page: Path, tmp_path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) >= 2 and "check_" in blocks[-1]
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    runpy.run_path(str(script), run_name="page")


def test_there_is_a_page_for_every_part() -> None:
    stems = [page.stem for page in PAGES]
    assert stems == ["add-a-box", "add-a-method", "add-a-search", "add-an-adaptor"]

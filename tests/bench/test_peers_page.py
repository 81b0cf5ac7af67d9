"""The page about helpers holds the tables of the stored results."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_of_the_page_are_those_of_the_stores(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for name in ("peers", "helper_ranking", "pages", "cell_results"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import peers

    page = peers.PAGE.read_text()
    tables = peers.tables()
    assert len(tables) == 6
    for name, text in tables.items():
        assert f"<!-- begin {name} -->\n{text}\n<!-- end {name} -->" in page, name

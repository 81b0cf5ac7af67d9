"""The display while a grid runs."""

import io

from rich.console import Console

from soda_tta.bench import Cell, CellResult
from soda_tta.bench.live_table import LiveTable

CELLS = [Cell(method=m, corruption=c) for m in ("deployed", "soda") for c in ("fog", "snow")]


def result(after: float) -> CellResult:
    return CellResult(before=20.0, after=after, queries_per_image=902.0, seconds=3.0)


def test_a_terminal_shows_a_growing_table() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, legacy_windows=False)
    with LiveTable(CELLS, [(CELLS[0], result(20.0))], quiet=False, console=console) as live:
        live(CELLS[2], result(30.0))
        live(CELLS[3], result(50.0))
    text = console.file.getvalue()
    last = text[text.rindex("method") :]
    assert all(part in last for part in ("1/2", "2/2", "40.0", "902", "3/4"))


def test_a_line_names_the_seed_if_there_are_several() -> None:
    console = Console(file=io.StringIO(), width=100)
    cells = [Cell(method="soda", seed=seed) for seed in (0, 1)]
    with LiveTable(cells, [], console=console) as live:
        live(cells[1], result(30.0))
    assert "soda, seed 1 " in console.file.getvalue()


def test_without_a_terminal_each_cell_is_one_line() -> None:
    console = Console(file=io.StringIO(), width=100)
    with LiveTable(CELLS, [], console=console) as live:
        live(CELLS[2], result(30.0))
    text = console.file.getvalue()
    assert text.count("\n") == 1
    assert "fog" in text
    assert "20.0 ->  30.0    902.0 queries per image" in text


def test_quiet_prints_nothing() -> None:
    console = Console(file=io.StringIO(), width=100)
    with LiveTable(CELLS, [], quiet=True, console=console) as live:
        live(CELLS[2], result(30.0))
        live.report_failure("a failure")
    assert console.file.getvalue() == ""

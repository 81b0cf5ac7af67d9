import io

from rich.console import Console

from soda_tta.bench import Cell
from soda_tta.bench.live import LiveTable

CELLS = [Cell(method=m, corruption=c) for m in ("deployed", "soda") for c in ("fog", "snow")]


def result(after: float) -> dict:
    return {"before": 20.0, "after": after, "queries_per_image": 902.0, "seconds": 3.0}


def test_in_a_terminal_a_table_grows() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, legacy_windows=False)
    with LiveTable(CELLS, [(CELLS[0], result(20.0))], quiet=False, console=console) as live:
        live(CELLS[2], result(30.0))
        live(CELLS[3], result(50.0))
    text = console.file.getvalue()
    last = text[text.rindex("method") :]
    assert "1/2" in last and "2/2" in last and "40.0" in last and "902" in last and "3/4" in last


def test_seeds_are_told_where_there_are_several() -> None:
    console = Console(file=io.StringIO(), width=100)
    cells = [Cell(method="soda", seed=seed) for seed in (0, 1)]
    with LiveTable(cells, [], console=console) as live:
        live(cells[1], result(30.0))
    assert "soda, seed 1 " in console.file.getvalue()


def test_elsewhere_there_is_a_line_a_cell_and_nothing_when_quiet() -> None:
    for quiet in (False, True):
        console = Console(file=io.StringIO(), width=100)
        with LiveTable(CELLS, [], quiet=quiet, console=console) as live:
            live(CELLS[2], result(30.0))
        text = console.file.getvalue()
        assert (
            text == ""
            if quiet
            else text.count("\n") == 1 and "fog" in text and "20.0 ->  30.0" in text
        )

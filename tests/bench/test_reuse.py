"""An experiment that was run with other settings spelled out, or in another store, is not rerun."""

import json

import pytest

from soda_tta.bench import Cell, CellResult, Store, run_grid
from soda_tta.bench.reuse import missing_cells
from soda_tta.cli import main


def cell(**facts) -> Cell:
    return Cell(**{"method": "soda", "images": 64, **facts})


def result(after: float, curve=()) -> CellResult:
    return CellResult(before=20.0, after=after, queries_per_image=7.0, curve=list(curve))


def test_results_of_other_stores_are_copied_with_their_adaptors(tmp_path) -> None:
    finished = Store(tmp_path / "finished")
    store = Store(tmp_path / "mine")
    finished.add(cell(curve=2), result(40.0, [{"epoch": 2}]))
    path = finished.adaptor_path(cell(curve=2))
    path.parent.mkdir()
    path.write_bytes(b"an adaptor")
    cells = [cell(settings={"q": 5}), cell(curve=2, settings={"q": 5}), cell(curve=3)]
    assert missing_cells(cells, store, [finished]) == [cell(curve=3)]  # it has other epochs
    assert run_grid(cells[:2], store, reuse=[finished]) == 0
    assert [each.curve for _, each in Store(tmp_path / "mine")] == [[], [{"epoch": 2}]]
    assert store.adaptor_path(cells[0]).read_bytes() == b"an adaptor"


def test_a_dry_run_prints_what_is_missing_and_its_queries(tmp_path, capsys) -> None:
    Store(tmp_path / "finished").add(Cell(method="deployed", images=100), result(20.0))
    grid = tmp_path / "grid.toml"
    grid.write_text('[[cells]]\nmethod = ["deployed", "soda"]\nimages = 100\n')
    command = ["bench", "run", str(grid), "--out", str(tmp_path / "mine"), "--dry-run"]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["cells"] == 2
    assert facts["queries"] == 100 + 100 * 902
    assert main([*command, "--reuse", str(tmp_path)]) == 0  # every store in the folder
    text = capsys.readouterr().out
    assert "deployed" not in text
    assert "90,200 queries at most" in text
    assert main([*command, "--reuse", str(tmp_path / "nowhere")]) != 0
    assert not (tmp_path / "mine").exists()


def test_a_store_to_reuse_is_not_written_and_may_hold_unknown_methods(tmp_path) -> None:
    finished = Store(tmp_path / "finished")
    finished.add(Cell(method="gone-method"), result(1.0))
    finished.add(cell(), result(40.0))
    with finished.path.open("ab") as file:
        file.write(b'{"format": 2, "key": "ha')  # another process is writing a line
    before = finished.path.read_bytes()
    with pytest.warns(UserWarning, match="incomplete"):
        finished = Store(tmp_path / "finished")
    reported = []

    def report(cell: Cell, result: CellResult) -> None:
        reported.append(result.after)

    mine = Store(tmp_path / "mine")
    assert run_grid([cell(settings={"q": 5})], mine, reuse=[finished], report=report) == 0
    assert reported == [40.0]
    assert finished.path.read_bytes() == before


def test_a_cell_that_this_version_refuses_does_not_stop_another_grid(tmp_path) -> None:
    finished = Store(tmp_path / "finished")
    finished.add(Cell(method="ma-so", budget=2.0), result(1.0))  # the budget is too small
    assert missing_cells([cell()], Store(tmp_path / "mine"), [finished]) == [cell()]


def test_clean_images_of_any_severity_are_the_same_experiment(tmp_path) -> None:
    finished = Store(tmp_path / "finished")
    finished.add(cell(corruption="clean", severity=3), result(40.0))
    cells = [cell(corruption="clean"), cell()]
    assert missing_cells(cells, Store(tmp_path / "mine"), [finished]) == [cell()]

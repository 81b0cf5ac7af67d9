"""An experiment that has been run under another name, or in another store, is not run again."""

import json

import pytest

from soda_tta.bench import Cell, Store, run_grid
from soda_tta.bench.finished import missing_of
from soda_tta.cli import main


def cell(**facts) -> Cell:
    return Cell(**{"method": "soda", "images": 64, **facts})


def result(after: float, curve=()) -> dict:
    return {
        "before": 20.0,
        "after": after,
        "queries_per_image": 7.0,
        "curve": list(curve),
        "card": {},
    }


def test_a_number_that_is_the_methods_own_makes_no_other_experiment() -> None:
    plain = cell()
    assert plain.key != cell(settings={"q": 5}).key
    assert (
        plain.experiment
        == cell(settings={"q": 5}).experiment
        == cell(settings={"directions": 5, "alpha": 1e-4}).experiment
    )
    different = [
        {"settings": {"q": 2}},
        {"seed": 1},
        {"budget": 9.0},
        {"images": 65},
        {"corruption": "fog"},
    ]
    assert all(cell(**other).experiment != plain.experiment for other in different)


def test_experiments_of_other_stores_are_copied_with_their_adaptors(tmp_path) -> None:
    done, store = Store(tmp_path / "done"), Store(tmp_path / "mine")
    done.add(cell(curve=2), result(40.0, [{"epoch": 2}]))
    path = done.adaptor_path(cell(curve=2))
    path.parent.mkdir()
    path.write_bytes(b"an adaptor")
    wanted = [cell(settings={"q": 5}), cell(curve=2, settings={"q": 5}), cell(curve=3)]
    assert missing_of(wanted, store, [done]) == [cell(curve=3)]  # no curve was kept at these epochs
    assert run_grid(wanted[:2], store, reuse=[done]) == 0
    assert [r["result"]["curve"] for r in Store(tmp_path / "mine").results.values()] == [
        [],
        [{"epoch": 2}],
    ]
    assert store.adaptor_path(wanted[0]).read_bytes() == b"an adaptor"


def test_a_dry_run_prints_what_is_missing_and_its_queries(tmp_path, capsys) -> None:
    done = Store(tmp_path / "done")
    done.add(Cell(method="deployed", images=100), result(20.0))
    grid = tmp_path / "grid.toml"
    grid.write_text('[[cells]]\nmethod = ["deployed", "soda"]\nimages = 100\n')
    command = ["bench", "run", str(grid), "--out", str(tmp_path / "mine"), "--dry-run"]
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cells"] == 2 and told["queries"] == 100 + 100 * 902
    assert main([*command, "--reuse", str(tmp_path)]) == 0  # every store under it
    said = capsys.readouterr().out
    assert main([*command, "--reuse", str(tmp_path / "nowhere")]) != 0
    assert (
        "deployed" not in said
        and "90,200 queries at most" in said
        and not (tmp_path / "mine").exists()
    )


def test_a_store_to_reuse_is_never_written_and_may_know_other_methods(tmp_path) -> None:
    done = Store(tmp_path / "done")
    done.add(Cell(method="gone-method"), result(1.0))
    done.add(cell(), result(40.0))
    with done.path.open("ab") as file:
        file.write(b'{"format": 1, "key": "ha')  # another process is at work
    before, told = done.path.read_bytes(), []
    with pytest.warns(UserWarning, match="torn"):
        done = Store(tmp_path / "done")
    report = lambda cell, result: told.append(result["after"])  # noqa: E731
    assert (
        run_grid([cell(settings={"q": 5})], Store(tmp_path / "mine"), reuse=[done], report=report)
        == 0
    )
    assert told == [40.0] and done.path.read_bytes() == before


def test_what_this_version_would_refuse_to_run_stops_no_other_grid(tmp_path) -> None:
    done = Store(tmp_path / "done")
    done.add(Cell(method="ma-so", budget=2.0), result(1.0))  # a budget that is too small for it
    assert missing_of([cell()], Store(tmp_path / "mine"), [done]) == [cell()]


def test_clean_images_of_any_severity_are_the_same_experiment(tmp_path) -> None:
    done = Store(tmp_path / "done")
    done.add(cell(corruption="clean", severity=3), result(40.0))
    assert missing_of([cell(corruption="clean"), cell()], Store(tmp_path / "mine"), [done]) == [
        cell()
    ]

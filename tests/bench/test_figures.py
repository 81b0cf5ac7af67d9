"""Figures of a store: their data by hand, and files in the format of their suffix."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from soda_tta.adaptors import Identity
from soda_tta.bench import Cell, CellResult, Store
from soda_tta.bench.adaptor_figures import check_changed, find_cells, load_adaptor
from soda_tta.bench.figure_data import convergence, heat
from soda_tta.bench.figures import SUFFIXES, draw_figure, figure_facts
from soda_tta.errors import SodaError


def result(before: float, after: float, queries: float = 10.0, curve=(), lr=None) -> CellResult:
    return CellResult(
        before=before,
        after=after,
        queries_per_image=queries,
        curve=list(curve),
        card={} if lr is None else {"chosen_lr": lr},
    )


def point(epoch: int, lr: float, accuracy: float) -> dict:
    return {"epoch": epoch, "queries": 1000 * epoch, "loss": 0.0, "lr": lr, "accuracy": accuracy}


@pytest.fixture
def store(tmp_path) -> Store:
    store = Store(tmp_path / "store")
    for seed, high in ((0, 30.0), (1, 40.0)):
        curve = [point(1, 0.1, 11.0), point(1, 0.01, high - 10), point(2, 0.01, high)]
        cell = Cell(method="soda", seed=seed, images=100, curve=1)
        store.add(cell, result(20, high, 50, curve, lr=0.01))
    store.add(Cell(method="deployed", images=100), result(20, 20, 1))
    for images, after in ((50, 25.0), (500, 45.0)):
        store.add(Cell(method="soda", images=images), result(20, after))
    for tau in (0.5, 0.9):
        for alpha in (1e-4, 1e-2):
            settings = {"tau": tau, "rho": 0.9, "alpha": alpha}
            cell = Cell(method="soda", images=100, settings=settings)
            store.add(cell, result(20, 100 * tau + alpha))
    return store


def test_convergence_is_the_mean_of_the_seeds_at_the_chosen_rate(store) -> None:
    ((name, points),) = figure_facts(store, "convergence")["series"].items()
    assert name == "soda"
    assert [(p["epoch"], p["accuracy"], p["queries_per_image"]) for p in points] == [
        (0, 20, 1),
        (1, 25, 10),
        (2, 35, 20),
    ]


def test_queries_have_a_point_for_every_column(store) -> None:
    points = {point["name"]: point for point in figure_facts(store, "queries")["points"]}
    assert points["deployed (images=100)"]["queries_per_image"] == 1
    assert points["soda (images=100)"] == {
        "name": "soda (images=100)",
        "queries_per_image": 50,
        "accuracy": 35,
    }


def test_heat_is_by_corruption_then_alpha_then_rho_then_tau(store, tmp_path) -> None:
    facts = figure_facts(store, "heat")
    assert facts["tau"] == [0.5, 0.9]
    assert facts["rho"] == [0.9]
    noise = {"0.0001": [[50.0001, 90.0001]], "0.01": [[50.01, 90.01]]}
    assert facts["accuracy"] == {"gaussian_noise": noise}
    settings = {"tau": 0.5, "rho": 0.9, "alpha": 0.01}
    cell = Cell(method="soda", corruption="contrast", images=100, settings=settings)
    store.add(cell, result(20, 80.0))
    contrast = {"0.0001": [[None, None]], "0.01": [[80.0, None]]}
    facts = figure_facts(store, "heat")
    assert facts["accuracy"] == {"gaussian_noise": noise, "contrast": contrast}
    pytest.importorskip("matplotlib")
    draw_figure(facts, tmp_path / "heat.svg")
    assert b"contrast" in (tmp_path / "heat.svg").read_bytes()


def test_points_hold_before_and_after_by_the_number_of_images(store) -> None:
    series = figure_facts(store, "points")["series"]
    assert "deployed, gaussian noise" in series
    rows = series["soda, gaussian noise"]
    assert [row["images"] for row in rows] == [50, 100, 500]
    assert rows[0] == {"images": 50, "before": 20, "after": 25}


@pytest.mark.parametrize("kind", ["convergence", "queries", "heat", "points"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_figure_has_the_same_bytes_twice_and_is_small(
    store, kind: str, suffix: str, tmp_path
) -> None:
    pytest.importorskip("matplotlib")
    facts = figure_facts(store, kind)
    paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
    for path in paths:
        draw_figure(facts, path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert len(first) < 80_000
    assert first.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")


def test_a_store_without_the_cells_of_a_figure_is_refused_with_the_grid(tmp_path) -> None:
    empty = Store(tmp_path / "empty")
    for kind, grid in (("convergence", "convergence"), ("heat", "selection"), ("points", "points")):
        with pytest.raises(SodaError, match=f"bench run {grid} --out"):
            figure_facts(empty, kind)


def test_impossible_figures_are_refused_with_the_remedy(store, tmp_path, monkeypatch) -> None:
    with pytest.raises(SodaError, match="choose one of convergence"):
        figure_facts(store, "pie")
    with pytest.raises(SodaError, match=r"neither an .svg nor a .png"):
        draw_figure(figure_facts(store, "points"), tmp_path / "figure.pdf")
    with pytest.raises(SodaError, match="no cell of soda-r"):
        figure_facts(store, "pictures", method="soda-r")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SodaError, match=r"pip install 'soda-tta\[report\]'"):
        draw_figure(figure_facts(store, "points"), tmp_path / "figure.svg")


def test_series_of_different_experiments_have_different_names(tmp_path) -> None:
    store = Store(tmp_path / "store")
    for severity, after in ((3, 84.0), (5, 56.0)):
        settings = {"tau": 0.1, "rho": 0.1, "alpha": 1.0}
        cell = Cell(method="soda", severity=severity, curve=1, settings=settings)
        store.add(cell, result(20, after, 5, [point(1, 0.1, after)]))
    names = list(convergence(store)["series"])
    assert len(names) == 2
    assert all("severity=" in name for name in names)
    with pytest.raises(SodaError, match="differ in severity"):
        heat(store)


def test_clean_images_come_after_the_corruptions(tmp_path) -> None:
    store = Store(tmp_path / "store")
    for corruption in ("contrast", "clean", "fog"):
        store.add(Cell(method="soda", corruption=corruption), result(20, 30))
    assert [cell.corruption for cell in find_cells(store, "soda")] == ["fog", "contrast", "clean"]


def test_a_method_with_several_settings_is_chosen_by_its_column(tmp_path) -> None:
    store = Store(tmp_path)
    for q in (2, 10):
        store.add(Cell(method="soda", corruption="fog", settings={"q": q}), result(20, 50))
    message = r"with several settings; choose one .*'soda \(q=10\)', 'soda \(q=2\)'"
    with pytest.raises(SodaError, match=message):
        find_cells(store, "soda")
    (cell,) = find_cells(store, "soda (q=2)")
    assert cell.settings == {"directions": 2}
    store.add(Cell(method="soda", corruption="fog"), result(20, 50))
    (cell,) = find_cells(store, "soda")  # now this is the name of a column
    assert cell.settings == {}


def test_a_missing_adaptor_is_learned_again(tmp_path, monkeypatch) -> None:
    store = Store(tmp_path / "store")
    cell = Cell(method="soda", corruption="fog")
    store.add(cell, result(20, 50))

    def run_cell(cell: Cell, folder: Path) -> None:
        folder.mkdir()
        Identity().save(folder / "adaptor.safetensors")

    monkeypatch.setattr("soda_tta.bench.runner.run_cell", run_cell)
    assert load_adaptor(store, cell).kind == "identity"
    assert store.adaptor_path(cell).exists()


def test_adaptors_that_change_nothing_are_refused() -> None:
    cell = Cell(method="soda", corruption="fog")
    with pytest.raises(SodaError, match=r"soda left the images of fog unchanged: .*another method"):
        check_changed([cell], [Identity()], "choose another method")
    check_changed([cell] * 2, [Identity(), SimpleNamespace(kind="bank")], "")  # one is enough


def test_an_experiment_that_is_stored_twice_is_one_series(tmp_path) -> None:
    store = Store(tmp_path)
    for images in (50, 100):
        for settings in ({}, {"q": 5}):
            store.add(Cell(method="soda", images=images, settings=settings), result(20, 30.0))
    assert list(figure_facts(store, "points")["series"]) == ["soda, gaussian noise"]

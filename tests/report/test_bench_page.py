"""The page of a bench store."""

import pytest

from soda_tta.bench import Cell, CellResult, Store
from soda_tta.errors import RunError
from soda_tta.report import write_report

from .conftest import check_self_contained


def result(before: float, after: float, curve=()) -> CellResult:
    return CellResult(
        before=before,
        after=after,
        queries={"select": 100},
        queries_per_image=10.0,
        seconds=60.0,
        curve=list(curve),
        card={"chosen_lr": 0.1},
    )


@pytest.fixture
def store(tmp_path) -> Store:
    store = Store(tmp_path / "store")
    curve = [
        {"epoch": e, "queries": 100 * e, "loss": -e, "lr": 0.1, "accuracy": 40.0 + e}
        for e in (1, 2, 3)
    ]
    dropped_rate = {"epoch": 1, "queries": 50, "loss": 0, "lr": 9.0, "accuracy": 1.0}
    for seed in (0, 1):
        soda = Cell(method="soda", corruption="fog", seed=seed)
        store.add(soda, result(40, 50 + seed, [dropped_rate, *curve]))
        store.add(Cell(method="deployed", corruption="fog", seed=seed), result(40, 40))
    store.add(Cell(method="soda", corruption="contrast"), result(40, 30))
    return store


def test_the_page_has_the_table_gains_and_curves(store, tmp_path) -> None:
    report = write_report(store.folder, tmp_path / "page.html")
    html = report.path.read_text()
    check_self_contained(html)
    assert "Protocol: cifar10, cifar10_resnet20, severity 5, 500 images." in html
    assert "50.5 ± 0.7" in html and "Accuracy over queries" in html and html.count("<svg") == 1
    soda, deployed = report.facts["gains"]
    assert soda["name"] == "soda" and soda["gain"] == pytest.approx(3.67) and soda["worse"] == 1
    assert deployed["gain"] == 0 and report.facts["cells"] == 5
    assert "<td><b>50.5 ± 0.7</b></td>" in html


def test_clean_images_are_excluded_from_the_means(store, tmp_path) -> None:
    store.add(Cell(method="soda", corruption="clean"), result(90, 90))
    gains = write_report(store.folder, tmp_path / "page.html").facts["gains"]
    assert gains[0]["gain"] == pytest.approx(3.67) and gains[0]["cells"] == 3


def test_no_accuracy_is_bold_if_severities_differ(store, tmp_path) -> None:
    store.add(Cell(method="soda", corruption="fog", severity=1), result(70, 80))
    html = write_report(store.folder, tmp_path / "page.html").path.read_text()
    assert "<td><b>" not in html and "Bold" not in html


def test_the_page_of_an_empty_store_names_the_next_command(tmp_path) -> None:
    (tmp_path / "results.jsonl").write_text("")
    html = write_report(tmp_path, tmp_path / "page.html").path.read_text()
    assert "bench run GRID" in html


def test_a_store_and_a_run_cannot_share_a_page(store, folder, tmp_path) -> None:
    with pytest.raises(RunError, match="page of its own"):
        write_report([store.folder, folder], tmp_path / "page.html")

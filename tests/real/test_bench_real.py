"""A small grid on real images and a real model: run, killed, resumed, printed."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from soda_tta import zoo
from soda_tta.bench import Cell, Store, run_cell
from soda_tta.bench.measurement import CurveRecorder
from soda_tta.engine.events import Step
from soda_tta.errors import MethodError, StorageError
from soda_tta.storage.atomic import append_bytes
from soda_tta.storage.locks import locked
from soda_tta.storage.run_folder import WORKING

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "bench.md"
GRID = """
[[cells]]
method = ["deployed", "soda", "soda-fo", "bn"]
corruption = ["contrast", "fog"]
images = 64
curve = 1
settings = { epochs = 2, lr = 0.05 }
"""
BENCH = [sys.executable, "-c", "from soda_tta.cli import main; raise SystemExit(main())", "bench"]


def bench(folder: Path, *words: str) -> str:
    """Run a bench command in a folder and return what it prints."""
    done = subprocess.run([*BENCH, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def wait_until_gone(folder: Path) -> None:
    """Wait for the workers of a killed grid, which end by themselves."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not any(process.info["cwd"] == str(folder) for process in psutil.process_iter(["cwd"])):
            return
        time.sleep(0.1)
    raise AssertionError("a worker outlived its parent")


def wait_for(condition) -> None:
    """Wait up to two minutes for a condition."""
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_a_killed_grid_resumes(tmp_path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    words = ["run", "grid.toml", "--out", "store", "--jobs", "2", "--json"]
    process = subprocess.Popen([*BENCH, *words], cwd=tmp_path, stdout=subprocess.DEVNULL)
    results = tmp_path / "store" / "results.jsonl"
    wait_for(lambda: results.exists() and results.read_text().count("\n") >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until_gone(tmp_path)
    kept = results.read_text().splitlines()[:2]
    assert json.loads(bench(tmp_path, *words))["run"] <= 6
    assert len(Store(tmp_path / "store")) == 8
    assert results.read_text().splitlines()[:2] == kept
    assert json.loads(bench(tmp_path, *words))["run"] == 0
    for cell, result in Store(tmp_path / "store"):
        assert len(result.curve) == (2 if cell.method in ("soda", "soda-fo") else 0)
    table = bench(tmp_path, "table", "store")
    assert "| contrast |" in table
    assert "| mean of 2 |" in table


def test_figures_of_adaptors_and_a_model_file(tmp_path) -> None:
    shutil.copy(zoo.onnx_path("cifar10_resnet20"), tmp_path / "mine.onnx")
    (tmp_path / "grid.toml").write_text(
        '[[cells]]\nmethod = "soda"\nmodel = ["cifar10_resnet20", "mine.onnx"]\n'
        'corruption = ["contrast", "pixelate"]\nimages = 40\n'
        "settings = { epochs = 2, lr = 0.05 }\n"
    )
    bench(tmp_path, "run", "grid.toml", "--out", "store", "--json")
    store = Store(tmp_path / "store")
    by_model = {}
    for cell, result in store:
        by_model.setdefault(cell.model, []).append((cell.corruption, result.after))
        assert store.adaptor_path(cell).exists()
    # the same model under two names
    assert sorted(by_model["mine.onnx"]) == sorted(by_model["cifar10_resnet20"])
    columns = json.loads(bench(tmp_path, "table", "store", "--json"))["columns"]
    assert columns == [f"soda (model={model})" for model in ("cifar10_resnet20", "mine.onnx")]
    figure = ("figure", "store", "--json", "--method", columns[0])
    facts = json.loads(bench(tmp_path, *figure, "--kind", "pictures", "--out", "pictures.svg"))
    assert [each["corruption"] for each in facts["pictures"]] == ["contrast", "pixelate"]
    for each in facts["pictures"]:
        assert each["distance"]["corrupted"] > 0
        assert len(each["adapted"]) == 32
    kept, removed = (store.adaptor_path(cell) for cell, _ in list(store)[:2])
    removed.unlink()  # as in a store from elsewhere: the cell is run again
    facts = json.loads(bench(tmp_path, *figure, "--kind", "tsne", "--out", "tsne.png"))
    assert len(facts["before"]) == len(facts["after"]) == len(facts["labels"]) == 40
    assert len(facts["classes"]) == 10
    assert kept.exists()
    assert (tmp_path / "tsne.png").stat().st_size > 5000


def test_lite0_and_its_pacs_classifier_have_the_known_accuracy() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    for model, data, images, low, high in (
        ("imagenet_efficientnet_lite0", "imagenet-1000", 200, 82, 88),  # 85.0; 89.3 on all 1,000
        ("pacs_photo_lite0", "pacs/cartoon", 210, 40, 55),
    ):
        cell = Cell(method="deployed", data=data, model=model, corruption="clean", images=images)
        assert low < run_cell(cell).after < high


def test_an_unfinished_cell_of_other_code_is_restarted(tmp_path) -> None:
    cell = Cell(method="soda", images=16, settings={"epochs": 1, "width": 4})
    first = run_cell(cell, tmp_path / "cell")
    card = json.loads((tmp_path / "cell" / "run.json").read_text())
    card["settings"].pop("average")
    (tmp_path / "cell" / "run.json").write_text(json.dumps({**card, "stopped": None}))
    again = run_cell(cell, tmp_path / "cell")
    assert "an unfinished cell was restarted" in again.notices[0]
    assert again.after == first.after
    assert again.queries == first.queries


def test_requests_lost_in_a_crash_do_not_change_a_cell_with_a_budget(tmp_path, monkeypatch) -> None:
    cell = Cell(method="soda", images=16, budget=20, settings={"epochs": 3, "width": 4})
    undisturbed = run_cell(cell)

    def interrupt(self, event) -> None:
        if isinstance(event, Step):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(CurveRecorder, "__call__", interrupt)
        run_cell(cell, tmp_path / "cell")
    # a request that was sent and never answered
    append_bytes(tmp_path / "cell" / WORKING / "ledger.txt", b"probe 200\n")
    again = run_cell(cell, tmp_path / "cell")
    assert "requests lost in a crash" in again.notices[0]
    assert again.after == undisturbed.after
    assert again.queries == undisturbed.queries
    assert again.queries_per_image == undisturbed.queries_per_image


def test_the_methods_in_the_documentation_run_under_one_budget(tmp_path) -> None:
    page = PAGE.read_text()
    (method,) = re.findall(r"```python\n(# mine.py\n.*?)```", page, re.DOTALL)
    grids = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (grid,) = (each for each in grids if "mine:" in each)
    (tmp_path / "mine.py").write_text(method)
    (tmp_path / "grid.toml").write_text(f"{grid}images = 32\n")
    bench(tmp_path, "run", "grid.toml", "--out", "store", "--json")
    results = {
        cell.method: result
        for cell, result in Store(tmp_path / "store")
        if cell.corruption == "fog"
    }
    assert set(results) == {"deployed", "soda-e", "mine:slower", "mine:flipped"}
    assert results["mine:flipped"].queries_per_image == 2
    assert 2 < results["mine:slower"].queries_per_image <= 15
    assert "of 150 epochs" in results["mine:slower"].notices[0]
    assert "ended by its budget" in bench(tmp_path, "table", "store")


def test_a_model_for_other_classes_and_too_many_images_are_refused() -> None:
    with pytest.raises(MethodError, match="10 classes and the labels of cifar100"):
        run_cell(Cell(method="deployed", data="cifar100", images=64))
    with pytest.raises(MethodError, match="10,000 images and the cell needs 20,000"):
        run_cell(Cell(method="deployed", images=20_000))


def test_an_interrupted_grid_stops_at_once_and_two_at_a_time_are_refused(tmp_path) -> None:
    # each cell takes minutes
    (tmp_path / "grid.toml").write_text(
        '[[cells]]\nmethod = "soda"\nimages = 256\nseed = [0, 1, 2]\n'
    )
    command = [*BENCH, "run", "grid.toml", "--out", "store"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    working = tmp_path / "store" / "working"
    wait_for(lambda: list(working.glob("*/working/*/history.jsonl")))
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "another process is running cells into store" in second.stderr
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    wait_until_gone(tmp_path)
    assert len(list(working.iterdir())) == 1  # no other cell was started


def test_a_locked_cell_keeps_its_files(tmp_path) -> None:
    cell = Cell(method="soda", images=16, settings={"epochs": 1, "width": 4})
    folder = tmp_path / "cell"
    run_cell(cell, folder)
    with locked(folder, "held"), pytest.raises(StorageError, match="another process"):
        run_cell(cell, folder)
    assert (folder / "run.json").exists()

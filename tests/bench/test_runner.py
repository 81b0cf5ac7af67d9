"""Running a grid with the user's own model, images and methods: failures and changed files."""

import multiprocessing
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from soda_tta.bench import Cell, Store, run_grid
from soda_tta.bench.measurement import cell_images, select_images
from soda_tta.bench.reuse import missing_cells
from soda_tta.bench.runner import CellsFailed
from soda_tta.errors import MethodError, RunError, SodaError

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "bench.md"
FAILING = """
import os, signal
from urllib.error import HTTPError
from soda_tta import Method
class Failing(Method):
    def answer(self, work):
        {statement}
{name} = Failing(name="{name}", summary="Fails.")
"""
# HTTPError cannot be unpickled from its message alone, so it cannot cross processes.
HTTP_ERROR = 'raise HTTPError("http://x", 500, "no", None, None)'
CHANGING = """
from soda_tta import find_method
mine = find_method("soda").but(epochs=1, q={q}, width=2).renamed("mine", "My method.")
"""


@pytest.fixture(autouse=True)
def workers_start_fast(monkeypatch, warm_processes) -> None:
    """Workers are processes of their own, but only one test waits for new interpreters."""
    monkeypatch.setattr("soda_tta.scale.processes.get_context", lambda how: warm_processes)


@pytest.fixture
def failing_method(tmp_path, monkeypatch):
    """A function that writes a method whose answer is a statement, and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, statement: str) -> str:
        (tmp_path / f"{name}.py").write_text(FAILING.format(name=name, statement=statement))
        return f"{name}:{name}"

    return write


def test_correctly_classified_images_are_recorded(own_cell, tmp_path) -> None:
    store = Store(tmp_path / "store")
    run_grid([own_cell()], store)
    result = store[own_cell()]
    correct = result.correct_images(50)
    assert correct.mean() * 100 == pytest.approx(result.after)
    assert result.notices == []
    # every second label is the model's own answer, except where rounding to bytes changed it
    assert correct[1::2].mean() > 0.9
    assert correct[::2].mean() < 0.1


def test_a_result_is_the_same_in_memory_and_from_the_file(own_cell, tmp_path) -> None:
    store = Store(tmp_path / "store")
    run_grid([own_cell()], store)
    assert store[own_cell()].card == Store(store.folder)[own_cell()].card


def test_a_cell_that_fails_does_not_stop_the_others(own_cell, tmp_path, failing_method) -> None:
    method = failing_method("failing", "raise ValueError('a slip')")
    store = Store(tmp_path / "store")
    cells = [own_cell(method=method), own_cell(), own_cell(method=method, seed=1)]
    reported: list[str] = []
    with pytest.raises(CellsFailed, match="2 of 3 cells failed") as caught:
        run_grid(cells, store, report_failure=reported.append)
    assert reported == caught.value.failures
    assert len(store) == 1
    assert cells[1] in store
    assert "failing:failing on" in reported[0]
    assert "ValueError: a slip" in reported[0]


def test_a_search_that_never_began_says_why(own_cell, tmp_path) -> None:
    frames = np.load(tmp_path / "mine.npz")["images"][:1].repeat(50, axis=0)
    np.savez(tmp_path / "frames.npz", images=frames, labels=np.zeros(50, int))
    store = Store(tmp_path / "store")
    cell = own_cell(method="soda-e", budget=50, data=str(tmp_path / "frames.npz"))
    run_grid([cell], store)
    assert store[cell].queries == {"select": 50}
    assert "show only 1 scene:" in store[cell].notices[0]


def test_the_methods_of_the_documentation_run(own_cell, tmp_path, monkeypatch) -> None:
    (method,) = re.findall(r"```python\n(# mine.py\n.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "mine.py").write_text(method)
    monkeypatch.syspath_prepend(tmp_path)
    store = Store(tmp_path / "store")
    flipped = own_cell(method="mine:flipped", settings={"power": 3})
    slower = own_cell(method="mine:slower", budget=15)
    run_grid([flipped, slower], store)
    assert store[flipped].queries == {"select": 50, "probe": 50}
    assert 2 < store[slower].queries_per_image <= 15
    assert "of 150 epochs" in store[slower].notices[0]


def test_missing_images_and_labels_are_reported_before_the_first_query(own_cell, tmp_path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(MethodError, match="50 images and a cell needs 60"):
        run_grid([own_cell(), own_cell(images=60)], store)
    np.savez(tmp_path / "bare.npz", images=np.zeros((50, 8, 8, 3), np.uint8))
    with pytest.raises(MethodError, match="has no labels"):
        run_grid([own_cell(data=str(tmp_path / "bare.npz"))], store)
    with pytest.raises(SodaError, match="nowhere"):
        run_grid([own_cell(data=str(tmp_path / "nowhere"))], store)
    assert not len(Store(tmp_path / "store"))


def test_missing_images_stop_only_the_cells_that_need_them(own_cell, tmp_path) -> None:
    reported: list[str] = []
    store = Store(tmp_path / "store")
    cells = [own_cell(), own_cell(data=str(tmp_path / "nowhere"))]
    with pytest.raises(CellsFailed, match="1 of 2 cells failed"):
        run_grid(cells, store, report_failure=reported.append)
    assert len(store) == 1
    assert len(reported) == 1
    assert "nowhere" in reported[0]


def test_the_corruption_of_an_image_does_not_depend_on_the_order(own_cell, tmp_path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), np.uint8)
    labels = np.arange(40) % 4
    np.savez(tmp_path / "larger.npz", images=pixels, labels=labels)
    facts = {"data": str(tmp_path / "larger.npz"), "corruption": "gaussian_noise", "images": 40}
    in_given_order = cell_images(own_cell(**facts, order="given"))
    by_class = cell_images(own_cell(**facts, order="classes"))
    order = np.argsort(labels, kind="stable")
    assert (in_given_order[order] == by_class[slice(0, 40)]).all()
    assert list(by_class.labels) == sorted(labels)


def test_images_sorted_by_class_are_evenly_spaced() -> None:
    assert select_images(np.array([2, 0, 1, 0]), 2) == slice(0, 2)
    assert select_images(np.repeat([0, 1, 2], 10), 3).tolist() == [0, 14, 29]
    assert select_images(np.repeat([0, 1, 2], 10), 30) == slice(0, 30)


def test_a_changed_method_is_detected(own_cell, tmp_path, monkeypatch) -> None:
    (tmp_path / "changing.py").write_text(CHANGING.format(q=2))
    monkeypatch.syspath_prepend(tmp_path)
    cell = own_cell(method="changing:mine")
    store = Store(tmp_path / "store")
    run_grid([cell], store)
    assert missing_cells([cell], store) == []
    assert missing_cells([cell], Store(tmp_path / "new"), [store]) == []
    (tmp_path / "changing.py").write_text(CHANGING.format(q=3) + "# and a remark\n")
    del sys.modules["changing"]
    other = Store(tmp_path / "other")
    run_grid([own_cell(method="changing:mine", seed=1)], other)
    with pytest.raises(RunError, match="changing:mine is not the same in"):
        store.merge(other)
    with pytest.raises(RunError, match="before its code changed"):
        run_grid([cell], store)
    assert missing_cells([cell], Store(tmp_path / "new"), [store]) == [cell]
    assert missing_cells([own_cell()], store) == [own_cell()]  # other methods are unaffected


@pytest.mark.parametrize(
    ("name", "statement", "message"),
    [
        ("unpicklable", HTTP_ERROR, "HTTPError: HTTP Error 500"),
        ("exiting", "raise SystemExit(3)", "3"),
    ],
)
def test_any_exception_of_a_users_method_ends_only_its_cell(
    own_cell, tmp_path, failing_method, name: str, statement: str, message: str
) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(CellsFailed, match=message):
        run_grid([own_cell(method=failing_method(name, statement)), own_cell()], store)
    assert own_cell() in store


def test_a_killed_worker_is_reported(own_cell, tmp_path, failing_method, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.scale.processes.get_context", multiprocessing.get_context)
    monkeypatch.setattr("soda_tta.scale.processes.ATTEMPTS", 1)  # new interpreters are slow
    method = failing_method("killed", "os.kill(os.getpid(), signal.SIGKILL)")
    store = Store(tmp_path / "store")
    with pytest.raises(RunError, match="a worker was killed"):
        run_grid([own_cell(), own_cell(method=method)], store)
    assert own_cell() in store


def test_the_cell_of_a_killed_worker_runs_again(own_cell, tmp_path, failing_method) -> None:
    """The first worker is killed; the cells of both are in the store, each once."""
    marker = tmp_path / "killed-once"
    kill_once = (
        f"import pathlib; marker = pathlib.Path({str(marker)!r}); "
        "marker.exists() or (marker.touch(), os.kill(os.getpid(), signal.SIGKILL)); "
        "return work.meter.asking('select')(work.images[:])"
    )
    cells = [own_cell(method=failing_method("killed_once", kill_once)), own_cell()]
    store = Store(tmp_path / "store")
    assert run_grid(cells, store, jobs=2) == 2
    assert marker.exists()
    assert len(store.path.read_text().splitlines()) == 2
    assert not (store.folder / "working").exists()


def test_only_the_first_of_many_failures_are_listed() -> None:
    message = str(CellsFailed([f"cell {number}: no" for number in range(30)], 40))
    assert "30 of 40 cells failed" in message
    assert "cell 9: no" in message
    assert "cell 10" not in message
    assert "and 20 more" in message


def test_results_of_a_replaced_model_are_not_reused(own_cell, tiny_onnx, tmp_path) -> None:
    store = Store(tmp_path / "store")
    run_grid([own_cell()], store)
    assert run_grid([own_cell()], store) == 0
    tiny_onnx.matrix = -tiny_onnx.matrix  # another model
    tiny_onnx().replace(own_cell().model)
    with pytest.raises(RunError, match="results of another model"):
        run_grid([own_cell()], store)
    mine = Store(tmp_path / "mine")
    assert missing_cells([own_cell()], mine, [store]) == [own_cell()]
    assert run_grid([own_cell()], mine, reuse=[store]) == 1
    assert mine[own_cell()].after < store[own_cell()].after


def test_a_missing_model_stops_only_the_grids_that_name_it(own_cell, tmp_path) -> None:
    store = Store(tmp_path / "store")
    run_grid([own_cell()], store)
    Path(own_cell().model).write_bytes(b"no longer a model")
    zoo = Cell(method="deployed", images=64)
    assert missing_cells([zoo], Store(tmp_path / "mine"), [store]) == [zoo]
    Path(own_cell().model).unlink()
    with pytest.raises(MethodError, match="there is no model"):
        missing_cells([own_cell()], store)


def test_two_models_of_one_name_are_not_merged(own_cell, tiny_onnx, tmp_path) -> None:
    first = Store(tmp_path / "first")
    second = Store(tmp_path / "second")
    run_grid([own_cell()], first)
    tiny_onnx.matrix = -tiny_onnx.matrix
    tiny_onnx().replace(own_cell().model)
    run_grid([own_cell(seed=1)], second)
    with pytest.raises(RunError, match=r"is not the same in .*first and in .*second"):
        first.merge(second)
    assert len(first) == 1

"""A grid on a model and images of one's own: what fails, and a model put in the place of another."""

from pathlib import Path

import numpy as np
import pytest

from soda_tta.bench import Cell, Store, run_grid
from soda_tta.bench.finished import missing_of
from soda_tta.bench.measurement import cell_images, right
from soda_tta.bench.runner import CellsFailed
from soda_tta.errors import MethodError, RunError, SodaError


@pytest.fixture
def own(tiny_onnx, images, tmp_path):
    """Cells of a tiny model; half of the labels are its own answers."""
    path = tiny_onnx()
    answers = (images.mean(axis=(2, 3)) @ tiny_onnx.matrix).argmax(axis=1)
    labels = np.where(np.arange(50) % 2, answers, (answers + 1) % 4)
    pixels = np.rint(images.transpose(0, 2, 3, 1) * 255).astype(np.uint8)
    np.savez(tmp_path / "mine.npz", images=pixels, labels=labels)
    facts = {
        "data": str(tmp_path / "mine.npz"),
        "model": str(path),
        "corruption": "clean",
        "images": 50,
    }
    return lambda **more: Cell(**{"method": "deployed", **facts, **more})


def test_which_images_were_right_is_kept(own, tmp_path) -> None:
    store = Store(tmp_path / "store")
    run_grid([own()], store)
    (_, result) = next(iter(store))
    kept = right(result, 50)
    assert kept.mean() * 100 == pytest.approx(result["after"]) and result["notices"] == []
    assert (
        kept[1::2].mean() > 0.9 > 0.1 > kept[::2].mean()
    )  # but for what rounding to bytes changed
    assert right({}, 50) is None


def test_a_cell_that_fails_does_not_keep_the_others_from_being_run(
    own, tmp_path, monkeypatch
) -> None:
    (tmp_path / "failing.py").write_text(
        OWN.format(name="failing", does="raise ValueError('a slip')")
    )
    monkeypatch.syspath_prepend(tmp_path)
    store = Store(tmp_path / "store")
    cells, heard = [own(method="failing:failing"), own(), own(method="failing:failing", seed=1)], []
    with pytest.raises(CellsFailed) as caught:
        run_grid(cells, store, complain=heard.append)
    assert heard == caught.value.failed
    assert len(store) == 1 and cells[1] in store
    assert "2 of 3 cells failed" in str(caught.value)
    assert (
        "failing:failing on" in caught.value.failed[0]
        and "ValueError: a slip" in caught.value.failed[0]
    )


def test_what_is_not_there_is_told_once_before_the_first_query(own, tmp_path) -> None:
    with pytest.raises(MethodError, match="50 images and a cell asks for 60"):
        run_grid([own(), own(images=60)], Store(tmp_path / "store"))
    np.savez(tmp_path / "bare.npz", images=np.zeros((50, 8, 8, 3), np.uint8))
    with pytest.raises(MethodError, match="has no labels"):
        run_grid([own(data=str(tmp_path / "bare.npz"))], Store(tmp_path / "store"))
    with pytest.raises(SodaError, match="nowhere"):
        run_grid([own(data=str(tmp_path / "nowhere"))], Store(tmp_path / "store"))
    assert not len(Store(tmp_path / "store"))


def test_what_is_not_there_keeps_only_the_cells_that_need_it_from_being_run(own, tmp_path) -> None:
    heard: list[str] = []
    store = Store(tmp_path / "store")
    with pytest.raises(CellsFailed, match="1 of 2 cells failed"):
        run_grid([own(), own(data=str(tmp_path / "nowhere"))], store, complain=heard.append)
    assert len(store) == 1 and len(heard) == 1 and "nowhere" in heard[0]


def test_the_order_of_images_says_nothing_of_the_corruption_each_has(own, tmp_path) -> None:
    pixels, labels = (
        np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), np.uint8),
        np.arange(40) % 4,
    )
    np.savez(tmp_path / "larger.npz", images=pixels, labels=labels)
    facts = {"data": str(tmp_path / "larger.npz"), "corruption": "gaussian_noise", "images": 40}
    given, sorted_ = (cell_images(own(**facts, order=order)) for order in ("given", "classes"))
    order = np.argsort(labels, kind="stable")
    assert (given[order] == sorted_[slice(0, 40)]).all() and list(sorted_.labels) == sorted(labels)


MINE = """
from soda_tta.methods import all_methods
mine = all_methods()["soda"].but(epochs=1, q={q}, width=2).renamed("mine", "Of one's own.")
"""


def test_a_method_that_was_changed_is_noticed(own, tmp_path, monkeypatch) -> None:
    import sys

    (tmp_path / "changing.py").write_text(MINE.format(q=2))
    monkeypatch.syspath_prepend(tmp_path)
    cell, store = own(method="changing:mine"), Store(tmp_path / "store")
    run_grid([cell], store)
    assert (
        missing_of([cell], store) == []
        and missing_of([cell], Store(tmp_path / "new"), [store]) == []
    )
    (tmp_path / "changing.py").write_text(MINE.format(q=3) + "# and a remark\n")
    del sys.modules["changing"]
    run_grid([own(method="changing:mine", seed=1)], other := Store(tmp_path / "other"))
    with pytest.raises(RunError, match="changing:mine was one thing"):
        store.merge(other)
    with pytest.raises(RunError, match="before it was changed"):
        run_grid([cell], store)
    assert missing_of([cell], Store(tmp_path / "new"), [store]) == [cell]
    assert missing_of([own()], store) == [own()]  # the others of the store are no worse for it


OWN = """
import os, signal
from urllib.error import HTTPError
from soda_tta.methods import Method
class Wrong(Method):
    def answer(self, given):
        {does}
{name} = Wrong(name="{name}", summary="Fails.", needs="probabilities")
"""
HTTP = 'raise HTTPError("http://x", 500, "no", None, None)'  # needs more to be made again than it keeps


@pytest.mark.parametrize(
    ("name", "does", "says"),
    [("strange", HTTP, "HTTPError: HTTP Error 500"), ("leaving", "raise SystemExit(3)", "3")],
)
def test_whatever_a_method_of_ones_own_raises_ends_its_cell_alone(
    own, tmp_path, monkeypatch, name: str, does: str, says: str
) -> None:
    (tmp_path / f"{name}.py").write_text(OWN.format(name=name, does=does))
    monkeypatch.syspath_prepend(tmp_path)
    store = Store(tmp_path / "store")
    with pytest.raises(CellsFailed, match=says):
        run_grid([own(method=f"{name}:{name}"), own()], store)
    assert own() in store


def test_a_worker_that_is_killed_is_told_as_such(own, tmp_path, monkeypatch) -> None:
    (tmp_path / "killed.py").write_text(
        OWN.format(name="killed", does="os.kill(os.getpid(), signal.SIGKILL)")
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RunError, match="a worker was killed"):
        run_grid([own(), own(method="killed:killed")], store := Store(tmp_path / "store"))
    assert own() in store


def test_many_failures_are_told_in_part() -> None:
    told = str(CellsFailed([f"cell {number}: no" for number in range(30)], 40))
    assert (
        "30 of 40 cells failed" in told
        and "cell 9: no" in told
        and "and 20 more" in told
        and "cell 10" not in told
    )


def test_results_of_a_model_that_was_replaced_are_not_taken_for_the_new_ones(
    own, tiny_onnx, tmp_path
) -> None:
    store = Store(tmp_path / "store")
    run_grid([own()], store)
    assert run_grid([own()], store) == 0
    tiny_onnx.matrix = -tiny_onnx.matrix  # another model
    tiny_onnx().replace(own().model)
    with pytest.raises(RunError, match="results of another model"):
        run_grid([own()], store)
    mine = Store(tmp_path / "mine")
    assert missing_of([own()], mine, [store]) == [own()]
    assert run_grid([own()], mine, reuse=[store]) == 1
    assert next(iter(mine))[1]["after"] < next(iter(store))[1]["after"]


def test_models_that_are_gone_stop_only_the_grids_that_name_them(own, tmp_path) -> None:
    store = Store(tmp_path / "store")
    run_grid([own()], store)
    Path(own().model).write_bytes(b"no model any more")
    zoo = Cell(method="deployed", images=64)
    assert missing_of([zoo], Store(tmp_path / "mine"), [store]) == [zoo]
    Path(own().model).unlink()
    with pytest.raises(MethodError, match="there is no model"):
        missing_of([own()], store)


def test_two_models_of_one_name_are_not_merged(own, tiny_onnx, tmp_path) -> None:
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    run_grid([own()], first)
    tiny_onnx.matrix = -tiny_onnx.matrix
    tiny_onnx().replace(own().model)
    run_grid([own(seed=1)], second)
    with pytest.raises(RunError, match=r"was one thing for .*first and another for .*second"):
        first.merge(second)
    assert len(first) == 1

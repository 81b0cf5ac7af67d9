"""A grid on a model and images of one's own: what fails, and a model put in the place of another."""

import numpy as np
import pytest

from soda_tta.bench import Cell, Store, run_grid
from soda_tta.bench.cell import right
from soda_tta.bench.runner import CellsFailed, missing_of
from soda_tta.errors import RunError


@pytest.fixture
def own(tiny_onnx, images, tmp_path):
    """Cells of a tiny model; half of the labels are its own answers."""
    path = tiny_onnx()
    answers = (images.mean(axis=(2, 3)) @ tiny_onnx.matrix).argmax(axis=1)
    labels = np.where(np.arange(50) % 2, answers, (answers + 1) % 4)
    pixels = np.rint(images.transpose(0, 2, 3, 1) * 255).astype(np.uint8)
    np.savez(tmp_path / "mine.npz", images=pixels, labels=labels)
    facts = {"data": str(tmp_path / "mine.npz"), "model": str(path), "corruption": "clean", "images": 50}
    return lambda **more: Cell(**{"method": "deployed", **facts, **more})


def test_which_images_were_right_is_kept(own, tmp_path) -> None:
    store = Store(tmp_path / "store")
    run_grid([own()], store)
    (_, result) = next(iter(store))
    kept = right(result, 50)
    assert kept.mean() * 100 == pytest.approx(result["after"]) and result["notices"] == []
    assert kept[1::2].mean() > 0.9 > 0.1 > kept[::2].mean()  # but for what rounding to bytes changed
    assert right({}, 50) is None


def test_a_cell_that_fails_does_not_keep_the_others_from_being_run(own, tmp_path) -> None:
    store = Store(tmp_path / "store")
    cells, heard = [own(images=60), own(), own(images=70)], []
    with pytest.raises(CellsFailed) as caught:
        run_grid(cells, store, complain=heard.append)
    assert heard == caught.value.failed
    assert len(store) == 1 and cells[1] in store
    assert "2 of 3 cells failed" in str(caught.value)
    assert "deployed on" in caught.value.failed[0] and "50 images and the cell asks for 60" in caught.value.failed[0]


def test_many_failures_are_told_in_part() -> None:
    told = str(CellsFailed([f"cell {number}: no" for number in range(30)], 40))
    assert "30 of 40 cells failed" in told and "cell 9: no" in told and "and 20 more" in told and "cell 10" not in told


def test_results_of_a_model_that_was_replaced_are_not_taken_for_the_new_ones(own, tiny_onnx, tmp_path) -> None:
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

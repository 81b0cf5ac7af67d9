"""Merged files that hold class weights and average further views."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from soda_tta.adaptors import Answering, Bank, Identity
from soda_tta.box import load_box
from soda_tta.cli import main
from soda_tta.engine.export import export_merged
from soda_tta.engine.triton import export_triton
from soda_tta.errors import BoxError, SodaError
from soda_tta.types import Array

ADAPTOR = Bank().adaptor({"contrast": 0.2, "red": 0.05})
WEIGHTS = np.array([0.2, 3.0, 0.0, 1.0])


def classes_of(model: Path, images: Array) -> int:
    return int(load_box(model)(images[:1]).shape[1])


def learned(adaptor: Any, views: tuple[str, ...], weights: Array | None) -> Any:
    return adaptor.answered(Answering(views, weights))


@pytest.mark.parametrize("opset", [None, 12])
@pytest.mark.parametrize("views", [(), ("mirror",), ("mirror", "shift")])
@pytest.mark.parametrize("adaptor", [ADAPTOR, Identity()])
def test_one_file_gives_the_answers_of_a_run(
    tiny_onnx: Any, tmp_path: Path, images: Array, adaptor: Any, views: Any, opset: Any
) -> None:
    model = tiny_onnx()
    if opset is not None:
        content = onnx.load(model)
        content.opset_import[0].version = opset
        onnx.save(content, model)
    images = np.rint(images * 255).astype(np.float32) / 255  # as files have them
    weights = np.resize(WEIGHTS, classes_of(model, images))
    adaptor = learned(adaptor, views, weights)
    done = export_merged(adaptor, model, tmp_path / "adapted.onnx", images=images)
    assert done.largest_deviation <= 1e-5
    box = load_box(model)
    expected = adaptor.answering.received(box(adaptor.answering.sent(adaptor(images))))
    merged = load_box(tmp_path / "adapted.onnx")
    np.testing.assert_allclose(merged(images), expected, atol=1e-5)
    np.testing.assert_allclose(merged(images[:1]), expected[:1], atol=1e-5)  # alone


def test_one_view_can_be_exported_of_two(tiny_onnx: Any, tmp_path: Path, images: Array) -> None:
    model = tiny_onnx()
    weights = np.resize(WEIGHTS, classes_of(model, images))
    path = tmp_path / "a.safetensors"
    learned(ADAPTOR, ("mirror",), weights).save(path)
    file = tmp_path / "one.onnx"
    assert main(["export", str(path), str(file), "--merge", str(model), "--views", "1"]) == 0
    plain = learned(ADAPTOR, (), weights)
    images = np.rint(images * 255).astype(np.float32) / 255
    expected = plain.answering.received(load_box(model)(ADAPTOR(images)))
    np.testing.assert_allclose(load_box(file)(images), expected, atol=1e-5)
    with pytest.raises(SodaError, match=r"views=3 is not valid: .* with 2"):
        export_merged(path, model, tmp_path / "three.onnx", views=3)


def test_the_adaptor_alone_says_what_it_lacks(tmp_path: Path, capsys: Any) -> None:
    learned(ADAPTOR, ("mirror",), None).save(tmp_path / "a.safetensors")
    main(["export", str(tmp_path / "a.safetensors"), str(tmp_path / "a.onnx")])
    assert "part of the answers: mean over the image and its mirror" in capsys.readouterr().out


def test_what_a_graph_cannot_give_is_refused(tiny_onnx: Any, tmp_path: Path, images: Array) -> None:
    fixed = tiny_onnx(shape=(2, 3, 8, 8))
    two = learned(ADAPTOR, ("mirror",), None)
    with pytest.raises(BoxError, match="exactly 2 images at a time"):
        export_merged(two, fixed, tmp_path / "adapted.onnx")
    with pytest.raises(SodaError, match="ensemble of Triton cannot send several views"):
        export_triton(two, tiny_onnx(), tmp_path / "repository")
    weights = np.resize(WEIGHTS, classes_of(fixed, images[:2]))
    with pytest.raises(BoxError, match="class weights need all"):
        export_merged(
            learned(ADAPTOR, (), weights), tiny_onnx(), tmp_path / "adapted.onnx", partial=True
        )


def test_an_ensemble_of_triton_holds_class_weights(
    tiny_onnx: Any, tmp_path: Path, images: Array
) -> None:
    model = tiny_onnx()
    weights = np.resize(WEIGHTS, classes_of(model, images))
    done = export_triton(learned(ADAPTOR, (), weights), model, tmp_path / "repository")
    assert done.largest_deviation <= 1e-5
    backs = list((tmp_path / "repository").glob("*_probabilities"))
    assert len(backs) == 1  # the model returns probabilities, but not the answers

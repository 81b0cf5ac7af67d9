"""One ONNX graph in place of adaptor and box: every convention gives the same probabilities."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from soda_tta.adaptors import Bank
from soda_tta.box import OnnxBox, load_box
from soda_tta.box.facts import carried_over
from soda_tta.engine.adapted_graph import (
    TAKES,
    AdaptedGraph,
    InThreeSteps,
    adapted_graph,
    read_model,
)
from soda_tta.engine.export_check import has_same_input, largest_deviation
from soda_tta.errors import BoxError, SodaError
from soda_tta.protocols.onnx_files import TOLERANCE
from soda_tta.protocols.onnx_graphs import OLDEST_OPSET, names_in, opset_of, rename
from soda_tta.types import Array

ADAPTOR = Bank().adaptor({"contrast": 0.2, "red": 0.05, "gamma": 0.3})
SIZES = [(8, 6), (21, 17), (5, 40), (4, 6)]  # the model's; larger; larger and flat; smaller
CLASSES = 5


def pictures(size: tuple[int, int], count: int = 3) -> Array:
    random = np.random.default_rng(size[0])
    return random.integers(0, 256, (count, 3, *size)).astype(np.float32) / 255


def write_model(
    path: Path,
    shape: tuple[Any, ...] = ("n", 3, 8, 6),
    *,
    dtype: int = TensorProto.FLOAT,
    names: tuple[str, str] = ("pixels", "scores"),
    logits: bool = False,
    as_maps: bool = False,
    opset: int = 17,
) -> Path:
    """A classifier in which every pixel and every channel counts."""
    values = int(np.prod(shape[1:]))
    scale = (6 / 255 if dtype == TensorProto.UINT8 else 6) / np.sqrt(values)
    matrix = scale * np.random.default_rng(3).normal(size=(values, CLASSES))
    nodes = [
        helper.make_node("Cast", [names[0]], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["numbers"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["shares"], axis=1),
    ]
    weights = [numpy_helper.from_array(matrix.astype(np.float32), "matrix")]
    output_shape = [shape[0], CLASSES, 1, 1] if as_maps else [shape[0], CLASSES]
    last = "logits" if logits else "shares"
    if as_maps:
        weights.append(numpy_helper.from_array(np.array([-1, CLASSES, 1, 1]), "maps"))
        nodes.append(helper.make_node("Reshape", [last, "maps"], [names[1]]))
    else:
        nodes.append(helper.make_node("Identity", [last], [names[1]]))
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info(names[0], dtype, shape)],
        [helper.make_tensor_value_info(names[1], TensorProto.FLOAT, output_shape)],
        weights,
    )
    if opset < 9:  # as the format was then: weights are inputs, too
        described = [helper.make_tensor_value_info("matrix", TensorProto.FLOAT, matrix.shape)]
        graph.input.extend(described)
    opsets = [helper.make_opsetid("", opset)]
    version = 3 if opset < 9 else helper.find_min_ir_version_for(opsets)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=version), path)
    return path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> AdaptedGraph:
    """A graph whose adaptor is used by the others: to export it takes longer than all the rest."""
    model = write_model(tmp_path_factory.mktemp("template") / "model.onnx")
    return adapted_graph(ADAPTOR, OnnxBox(model), "uint8")


def deviations(graph: AdaptedGraph, folder: Path, sizes: list[tuple[int, int]]) -> list[float]:
    """Between the one file and the two steps in PyTorch and numpy, for images of these sizes."""
    onnx.save(graph.merged(), folder / "merged.onnx")
    merged = load_box(folder / "merged.onnx")
    view = graph.box.input.view
    differences = []
    for size in sizes:
        images = pictures(size)
        larger = view is not None and images[0, 0].size > np.prod(view.size)
        expected = graph.box(ADAPTOR(view(images) if larger else images))
        differences.append(float(np.abs(merged(images) - expected).max()))
    return differences


# what is written about a model: the file itself, then the facts about it
CONVENTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "the names of the file itself": ({"names": ("images", "probabilities")}, {}),
    "NHWC, ImageNet in 0..1": (
        {"shape": ("n", 8, 6, 3)},
        {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
    ),
    "caffe": ({"logits": True}, {"channels": "BGR", "pixel_range": 255, "mean": (104, 117, 124)}),
    "grey in -1..1": ({"shape": ("n", 1, 8, 6)}, {"mean": 0.5, "std": 0.5}),
    "half precision": ({"dtype": TensorProto.FLOAT16, "logits": True}, {}),
    "fixed batch": ({"shape": (4, 3, 8, 6)}, {}),
    "logits as maps": ({"logits": True, "as_maps": True}, {}),
    "crop": ({}, {"crop": 0.875}),
    "turned by 90": ({}, {"turn": 90}),
    "turned by 180, mirrored": ({"shape": ("n", 8, 6, 3)}, {"turn": 180, "mirror": True}),
    "turned by 270, cropped": ({}, {"turn": 270, "crop": 1.0, "channels": "BGR"}),
    "background": ({"logits": True}, {"background": True}),
    "partial, with a background": ({}, {"partial": True, "background": True}),
}


@pytest.mark.parametrize(
    ("convention", "takes"),
    [*((name, "uint8") for name in CONVENTIONS), ("plain", "float"), ("crop", "float")],
)
def test_one_file_gives_what_adaptor_and_box_give(
    template: AdaptedGraph, tmp_path: Path, convention: str, takes: str
) -> None:
    file, facts = CONVENTIONS[convention]
    path = write_model(tmp_path / "model.onnx", **file)
    box = load_box(path, **facts, **({"logits": True} if file.get("logits") else {}))
    assert isinstance(box, OnnxBox)
    graph = replace(template, box=box, model=read_model(path), takes=takes)
    assert max(deviations(graph, tmp_path, SIZES)) <= TOLERANCE
    if graph.box.logits or graph.box.partial:
        images = pictures(SIZES[1], 4)
        difference = InThreeSteps(graph)(images) - graph.in_two_steps(images)
        assert np.abs(difference).max() <= TOLERANCE


def test_a_model_that_takes_bytes_gets_the_same_bytes(
    template: AdaptedGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_model(tmp_path / "model.onnx", (4, 8, 6, 3), dtype=TensorProto.UINT8)
    graph = replace(template, box=OnnxBox(path), model=read_model(path))
    assert deviations(graph, tmp_path, [(8, 6)])[0] <= TOLERANCE
    images = pictures((21, 17))
    assert has_same_input(graph, images)
    cropped = replace(graph.box.input, crop=0.98)
    monkeypatch.setattr(AdaptedGraph, "model_input", lambda _, images: cropped.prepare(images))
    assert not has_same_input(graph, images)


def test_rounding_is_amplified_only_in_images_that_are_resized(template: AdaptedGraph) -> None:
    def in_steps(images: Array) -> Array:
        return template.in_two_steps(images) + np.float32(1 / 256)

    deviation, notices = largest_deviation(template, in_steps, [pictures((21, 17))])
    assert deviation == 0 and "images of 17x21" in notices[0] and "0.004" in notices[0]
    with pytest.raises(SodaError, match=r"0\.0039 in a probability"):
        largest_deviation(template, in_steps, [pictures((8, 6))])


@pytest.mark.parametrize("opset", [7, 12, 21])
def test_the_file_has_the_operators_of_the_model(tmp_path: Path, opset: int) -> None:
    path = write_model(tmp_path / "model.onnx", opset=opset)
    graph = adapted_graph(ADAPTOR, OnnxBox(path), "uint8")
    assert max(deviations(graph, tmp_path, SIZES)) <= TOLERANCE
    merged = onnx.load(tmp_path / "merged.onnx")
    onnx.checker.check_model(merged, full_check=True)
    assert opset_of(merged) == max(opset, OLDEST_OPSET)


def test_a_model_of_any_size_gets_images_as_they_are(
    template: AdaptedGraph, tmp_path: Path, tiny_onnx: Any
) -> None:
    path = tiny_onnx(shape=("n", 3, "height", "width"))
    graph = replace(template, box=OnnxBox(path), model=read_model(path))
    assert max(deviations(graph, tmp_path, SIZES)) <= TOLERANCE
    assert "If" not in {node.op_type for node in graph.merged().graph.node}


def test_the_file_says_that_it_takes_plain_images(template: AdaptedGraph, tmp_path: Path) -> None:
    onnx.save(template.merged(), tmp_path / "merged.onnx")
    box = load_box(tmp_path / "merged.onnx")
    assert box.input.card() == {**TAKES["uint8"].card(), "size": None}
    assert not (box.logits or box.partial or box.background)
    # nothing is carried over to it from the card of a run
    facts = {"mean": [0.5] * 3, "channels": "BGR", "crop": 0.875, "turn": 90, "mirror": True}
    assert carried_over({"input": facts, "logits": True, "background": True}, box.declared) == {}
    session = onnxruntime.InferenceSession(tmp_path / "merged.onnx")
    assert [each.name for each in session.get_inputs()] == ["images"]
    assert [each.name for each in session.get_outputs()] == ["probabilities"]
    assert "contrast" in session.get_modelmeta().custom_metadata_map["soda_tta.adaptor"]


def test_what_a_run_worked_on_is_not_made_smaller(template: AdaptedGraph, tmp_path: Path) -> None:
    graph = replace(template, shrink=False)
    images = pictures((21, 17))
    onnx.save(graph.merged(), tmp_path / "merged.onnx")
    expected = graph.box(ADAPTOR(images))
    np.testing.assert_allclose(load_box(tmp_path / "merged.onnx")(images), expected, atol=1e-5)
    other = graph.box(ADAPTOR(graph.box.input.view(images)))
    assert np.abs(expected - other).max() > 1e-4  # so the test can fail


def test_a_file_with_an_adaptor_is_refused(template: AdaptedGraph, tmp_path: Path) -> None:
    onnx.save(template.merged(), tmp_path / "merged.onnx")
    with pytest.raises(BoxError, match="already contains an adaptor"):
        read_model(tmp_path / "merged.onnx")


def test_other_images_are_refused(template: AdaptedGraph) -> None:
    with pytest.raises(SodaError, match="uint8, float"):
        adapted_graph(ADAPTOR, template.box, "int8")


def test_a_tensor_is_renamed_in_inner_graphs_too() -> None:
    inner = helper.make_graph(
        [helper.make_node("Identity", ["images"], ["inner"])],
        "inner",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [1])],
    )
    outer = helper.make_graph(
        [helper.make_node("If", ["yes"], ["out"], then_branch=inner, else_branch=inner)],
        "outer",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1])],
    )
    assert {"images", "inner", "out", "yes"} <= names_in(outer)
    rename(outer, "images", "frames")
    assert "images" not in names_in(outer) and "frames" in names_in(outer)
    assert outer.node[0].attribute[0].g.node[0].input[0] == "frames"

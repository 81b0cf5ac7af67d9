"""Models that return only their top classes are read by their indices, or refused."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from soda_tta import load_box
from soda_tta.box.probabilities import check_probabilities, softmax
from soda_tta.errors import BoxError

CLASSES = 12
WEIGHTS = 20 * np.random.default_rng(3).normal(size=(3, CLASSES)).astype(np.float32)


@pytest.fixture
def top_three(tmp_path: Path) -> Path:
    """`softmax(mean colour @ weights)`, of which the file returns the top three classes."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["mean", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["all"], axis=1),
        helper.make_node("TopK", ["all", "k"], ["scores", "indices"], axis=1),
    ]
    image = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 8, 8])
    outputs = [
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3]),
        helper.make_tensor_value_info("indices", TensorProto.INT64, ["n", 3]),
    ]
    constants = [
        numpy_helper.from_array(WEIGHTS, "weights"),
        numpy_helper.from_array(np.array([3]), "k"),
    ]
    graph = helper.make_graph(nodes, "top", [image], outputs, constants)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "top.onnx")
    return tmp_path / "top.onnx"


@pytest.mark.parametrize("options", [{}, {"partial": True}, {"output": "scores"}])
def test_without_the_number_of_classes_it_is_refused_with_the_remedy(
    top_three: Path, options: dict
) -> None:
    with pytest.raises(BoxError, match=r"top classes.*'indices'.*class_count=1000"):
        load_box(top_three, **options)


def test_with_it_every_score_is_that_of_its_class(top_three: Path, images: np.ndarray) -> None:
    box = load_box(top_three, class_count=CLASSES)
    rows = box(images)
    expected = softmax(images.mean((2, 3)) @ WEIGHTS)
    top = np.argsort(-expected, axis=1)[:, :3]
    assert box.classes == CLASSES and rows.shape == (len(images), CLASSES)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-5)
    for places in (np.s_[:, 0], np.s_[:, :3]):
        found = np.take_along_axis(rows, np.atleast_2d(top[places].T).T, axis=1)
        wanted = np.take_along_axis(expected, np.atleast_2d(top[places].T).T, axis=1)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert box.fingerprint() != load_box(top_three, class_count=CLASSES + 1).fingerprint()


def test_too_few_classes_and_logits_are_refused(top_three: Path, images: np.ndarray) -> None:
    with pytest.raises(BoxError, match="class_count is 4; pass the number of all classes"):
        load_box(top_three, class_count=4)(images)
    with pytest.raises(BoxError, match="export the model with a softmax"):
        load_box(top_three, class_count=CLASSES, logits=True)(images)


def test_a_file_of_all_classes_takes_no_class_count(tiny_onnx) -> None:
    with pytest.raises(BoxError, match="class_count is for; leave it out"):
        load_box(tiny_onnx(), class_count=4)


def test_ranked_rows_are_refused_with_and_without_partial() -> None:
    ranked = np.sort(np.random.default_rng(0).dirichlet(np.ones(50), 20), axis=1)[:, :-6:-1]
    for partial in (True, False):
        with pytest.raises(BoxError, match="ranks of its top classes"):
            check_probabilities(ranked, 20, None, logits=False, partial=partial)


@pytest.mark.parametrize(
    "rows",
    [
        np.tile([0.7, 0.2, 0.06, 0.03], (64, 1)),  # one class throughout, rounded
        np.tile([0.6, 0.1, 0.0, 0.0], (64, 1)),  # top classes in their own columns
        np.tile([0.6, 0.3], (64, 1)),  # two columns say nothing
        np.array([[0.5, 0.2, 0.1, 0.05]]),  # nor does one image
    ],
)
def test_rows_of_classes_are_not_taken_for_ranks(rows: np.ndarray) -> None:
    check_probabilities(rows, len(rows), None, logits=False, partial=True)


def test_a_served_model_that_declares_indices_is_refused(server) -> None:
    described = {"name": "images", "datatype": "FP32", "shape": [-1, 3, 8, 8]}
    outputs = [
        {"name": "scores", "datatype": "FP32", "shape": [-1, 5]},
        {"name": "indices", "datatype": "INT64", "shape": [-1, 5]},
    ]
    server.pages["/v2/models/tiny"] = {"inputs": [described], "outputs": outputs}
    with pytest.raises(BoxError, match="serve the scores of all classes"):
        load_box(server.url, output="scores")

"""ONNX files in ONNX Runtime, compared with the same calculation in numpy."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from soda_tta.box import OnnxBox
from soda_tta.box.probabilities import softmax
from soda_tta.errors import BoxError
from soda_tta.protocols.onnx_files import METADATA_KEY


def test_a_dynamic_batch_gives_what_numpy_gives(tiny_onnx, images: np.ndarray) -> None:
    path = tiny_onnx()
    np.testing.assert_allclose(
        OnnxBox(path)(images), softmax(images.mean((2, 3)) @ tiny_onnx.matrix), atol=1e-6
    )


def test_normalisation_is_as_stated(tiny_onnx, images: np.ndarray) -> None:
    box = OnnxBox(tiny_onnx(), mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
    colours = (images.mean((2, 3)) - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]
    np.testing.assert_allclose(box(images), softmax(colours @ tiny_onnx.matrix), atol=1e-5)


@pytest.mark.parametrize("count", [1, 4, 6, 50])
def test_a_fixed_batch_is_padded_and_the_padding_dropped(
    tiny_onnx, images: np.ndarray, count: int
) -> None:
    box = OnnxBox(tiny_onnx(shape=(4, 3, 8, 8)), batch=64)
    assert box.batch == 4
    expected = softmax(images[:count].mean((2, 3)) @ tiny_onnx.matrix)
    np.testing.assert_allclose(box(images[:count]), expected, atol=1e-6)


def test_channels_last_is_read_from_the_shape(tiny_onnx, images: np.ndarray) -> None:
    box = OnnxBox(tiny_onnx(shape=("n", 8, 8, 3)))
    assert box.input.layout == "NHWC"
    np.testing.assert_allclose(
        box(images), softmax(images.mean((2, 3)) @ tiny_onnx.matrix), atol=1e-6
    )


def test_a_file_that_takes_bytes_gets_bytes(tiny_onnx, images: np.ndarray) -> None:
    box = OnnxBox(tiny_onnx(dtype=TensorProto.UINT8))
    assert box.input.dtype == "uint8" and box.quantum == 1 / 255
    colours = np.rint(images * 255).mean((2, 3))
    np.testing.assert_allclose(
        box(images), softmax((colours @ tiny_onnx.matrix).astype(np.float32)), atol=1e-4
    )


def test_half_precision_files_work(tiny_onnx, images: np.ndarray) -> None:
    box = OnnxBox(tiny_onnx(dtype=TensorProto.FLOAT16))
    np.testing.assert_allclose(
        box(images), softmax(images.mean((2, 3)) @ tiny_onnx.matrix), atol=1e-2
    )


def test_images_are_resized_to_the_size_of_the_file(tiny_onnx, images: np.ndarray) -> None:
    flat = np.broadcast_to(images.mean((2, 3), keepdims=True), (50, 3, 20, 12))
    expected = softmax(images.mean((2, 3)) @ tiny_onnx.matrix)
    np.testing.assert_allclose(
        OnnxBox(tiny_onnx())(np.ascontiguousarray(flat)), expected, atol=1e-5
    )


def test_logits_must_be_stated(tiny_onnx, images: np.ndarray) -> None:
    path = tiny_onnx(outputs=("logits",))
    with pytest.raises(BoxError, match="logits=True"):
        OnnxBox(path)(images)
    expected = softmax(images.mean((2, 3)) @ tiny_onnx.matrix)
    np.testing.assert_allclose(OnnxBox(path, logits=True)(images), expected, atol=1e-6)


def test_two_outputs_need_a_name(tiny_onnx, images: np.ndarray) -> None:
    path = tiny_onnx(outputs=("logits", "probabilities"))
    with pytest.raises(
        BoxError, match=r"has the outputs logits, probabilities; choose the one .*\(output='NAME'\)"
    ):
        OnnxBox(path)
    expected = softmax(images.mean((2, 3)) @ tiny_onnx.matrix)
    np.testing.assert_allclose(OnnxBox(path, output="probabilities")(images), expected, atol=1e-6)


def test_labels_next_to_the_probabilities_need_no_name(tiny_onnx, images: np.ndarray) -> None:
    box = OnnxBox(tiny_onnx(outputs=("labels", "probabilities")))
    assert box.output_name == "probabilities"
    assert box(images).shape == (50, 4)


def test_a_missing_output_is_a_clear_error(tiny_onnx) -> None:
    with pytest.raises(BoxError, match=r"no output 'scores'.*probabilities"):
        OnnxBox(tiny_onnx(), output="scores")


def test_the_metadata_of_a_file_holds_unless_something_else_is_stated(
    tiny_onnx, images: np.ndarray
) -> None:
    facts = {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "channels": "BGR", "logits": True}
    facts["partial"] = True
    path = tiny_onnx(outputs=("logits",), facts=json.dumps(facts))
    box = OnnxBox(path)
    assert (box.logits, box.input.channels, box.input.mean) == (True, "BGR", (0.5, 0.5, 0.5))
    colours = (images.mean((2, 3))[:, ::-1] - 0.5) / 0.25
    np.testing.assert_allclose(box(images), softmax(colours @ tiny_onnx.matrix), atol=1e-5)
    assert OnnxBox(path, mean=(0.1,), channels="RGB", logits=False).input.channels == "RGB"
    assert OnnxBox(path, logits=False).logits is False
    assert OnnxBox(path).partial and not OnnxBox(path, partial=False).partial


def test_the_metadata_may_hold_a_whole_card(tiny_onnx) -> None:
    card = OnnxBox(tiny_onnx(), mean=(0.5,)).input.card()
    assert OnnxBox(tiny_onnx(facts=json.dumps(card))).input.card() == card


@pytest.mark.parametrize(
    "facts", ["{", "[1]", '"RGB"', '{"colour": 1}', '{"mean": [1, 2]}', '{"mean": ["a"]}']
)
def test_invalid_metadata_is_a_clear_error(tiny_onnx, facts: str) -> None:
    with pytest.raises(BoxError, match=METADATA_KEY):
        OnnxBox(tiny_onnx(facts=facts))


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(
        BoxError, match=r"absent.onnx does not exist; pass the path of an ONNX file"
    ):
        OnnxBox(tmp_path / "absent.onnx")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04\x95", b"\x08\x07" * 100])
def test_a_file_that_is_not_onnx_is_a_clear_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(
        BoxError, match=r"model.onnx is not an ONNX model that ONNX Runtime can load"
    ):
        OnnxBox(path)


def test_a_truncated_file_is_a_clear_error(tiny_onnx) -> None:
    path = tiny_onnx()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(BoxError, match="is not an ONNX model"):
        OnnxBox(path)


def save(path: Path, nodes: list, inputs: list, outputs: list, constants: list) -> Path:
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


REFUSED = {
    "flat input": (("n", 192), TensorProto.FLOAT, "an image model takes four dimensions"),
    "four channels": (("n", 4, 8, 8), TensorProto.FLOAT, "takes 4 channels"),
    "whole numbers": (
        ("n", 3, 8, 8),
        TensorProto.INT64,
        r"takes tensor\(int64\); this package sends",
    ),
}


@pytest.mark.parametrize(("shape", "dtype", "message"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_does_not_take_images_is_a_clear_error(
    tmp_path: Path, shape: tuple, dtype: int, message: str
) -> None:
    image, output = (
        helper.make_tensor_value_info(name, dtype, shape) for name in ("images", "same")
    )
    nodes = [helper.make_node("Identity", ["images"], ["same"])]
    with pytest.raises(BoxError, match=message):
        OnnxBox(save(tmp_path / "identity.onnx", nodes, [image], [output], []))


def test_two_inputs_are_a_clear_error(tmp_path: Path) -> None:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3, 8, 8]) for name in "ab"
    ]
    output = helper.make_tensor_value_info("c", TensorProto.FLOAT, ["n", 3, 8, 8])
    path = save(
        tmp_path / "sum.onnx", [helper.make_node("Add", ["a", "b"], ["c"])], inputs, [output], []
    )
    with pytest.raises(BoxError, match="has 2 inputs; an image classifier has one"):
        OnnxBox(path)


def test_a_file_that_returns_more_rows_than_images_is_refused(
    tmp_path: Path, images: np.ndarray
) -> None:
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["once"]),
        helper.make_node("Concat", ["once", "once"], ["twice"], axis=0),
    ]
    image = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 8, 8])
    output = helper.make_tensor_value_info("twice", TensorProto.FLOAT, ["m", 3])
    with pytest.raises(BoxError, match="100 rows for 50 images"):
        OnnxBox(save(tmp_path / "twice.onnx", nodes, [image], [output], []))(images)


def test_a_failure_of_onnx_runtime_is_a_box_error(tmp_path: Path, images: np.ndarray) -> None:
    # 192 values cannot be reshaped to rows of 7
    reshape = numpy_helper.from_array(np.array([-1, 7], np.int64), "shape")
    nodes = [helper.make_node("Reshape", ["images", "shape"], ["rows"])]
    image = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])
    output = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["m", 7])
    box = OnnxBox(save(tmp_path / "seven.onnx", nodes, [image], [output], [reshape]))
    with pytest.raises(BoxError, match=r"ONNX Runtime could not run .*seven.onnx: "):
        box(images[:1])


def test_the_fingerprint_is_the_hash_of_the_file(tiny_onnx) -> None:
    first = OnnxBox(tiny_onnx())
    other = OnnxBox(tiny_onnx(outputs=("logits",)))
    assert first.fingerprint() == OnnxBox(first.path).fingerprint() != other.fingerprint()
    assert first.fingerprint().startswith("onnx:sha256:")


def test_weights_in_a_file_of_their_own_are_part_of_the_fingerprint(
    tiny_onnx, images: np.ndarray
) -> None:
    path = tiny_onnx()
    model = onnx.load(path)
    inside = OnnxBox(path).fingerprint()
    external = dict(save_as_external_data=True, location="weights.bin", size_threshold=0)
    onnx.save(model, path.with_name("outside.onnx"), **external)
    first = OnnxBox(path.with_name("outside.onnx"))
    fingerprint = first.fingerprint()
    probabilities = first(images)
    weights = path.with_name("weights.bin")
    weights.write_bytes(np.frombuffer(weights.read_bytes(), np.uint8)[::-1].tobytes())
    second = OnnxBox(first.path)
    assert second.fingerprint() != fingerprint
    assert not np.allclose(second(images), probabilities, equal_nan=True)
    assert OnnxBox(path).fingerprint() == inside


@pytest.mark.parametrize(
    "name", ["/etc/hostname", "../secret.bin", "link.bin", "/dev/null", "x" * 999]
)
def test_weights_outside_the_folder_of_the_file_are_not_read(tiny_onnx, name: str) -> None:
    path = tiny_onnx()
    path.parent.with_name("secret.bin").write_bytes(bytes(64))
    path.with_name("link.bin").symlink_to("../secret.bin")
    model = onnx.load(path)
    tensor = TensorProto(name="unused", data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=name)
    box = OnnxBox(path)  # ONNX Runtime has checks of its own, which depend on its version
    model.graph.initializer.append(tensor)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(BoxError, match="not a file in its folder"):
        box.fingerprint()


def test_a_model_and_its_weights_may_be_links_into_a_cache(tiny_onnx, tmp_path: Path) -> None:
    model = onnx.load(tiny_onnx())
    (tmp_path / "blobs").mkdir()
    (tmp_path / "shown").mkdir()
    external = dict(save_as_external_data=True, location="weights.bin", size_threshold=0)
    onnx.save(model, tmp_path / "blobs" / "model.onnx", **external)
    for name in ("model.onnx", "weights.bin"):
        (tmp_path / "shown" / name).symlink_to(tmp_path / "blobs" / name)
    box = OnnxBox(tmp_path / "blobs" / "model.onnx")
    expected = box.fingerprint()
    box.path = tmp_path / "shown" / "model.onnx"
    assert box.fingerprint() == expected


@pytest.mark.parametrize("name", ["cpu", "CPU", "CPUExecutionProvider"])
def test_the_provider_can_be_chosen(tiny_onnx, images: np.ndarray, name: str) -> None:
    path = tiny_onnx()
    box = OnnxBox(path, provider=name)
    assert box.session.get_providers() == ["CPUExecutionProvider"]
    np.testing.assert_array_equal(box(images), OnnxBox(path)(images))


def test_a_provider_that_is_not_there_is_refused_with_those_that_are(tiny_onnx) -> None:
    with pytest.raises(BoxError, match=r"has no provider 'abacus'; choose from: .*cpu.*onnxrun"):
        OnnxBox(tiny_onnx(), provider="abacus")


def test_a_provider_that_does_not_start_is_not_replaced_by_the_cpu(tiny_onnx, monkeypatch) -> None:
    import onnxruntime

    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: both)
    with pytest.raises(BoxError, match="CUDAExecutionProvider"):
        OnnxBox(tiny_onnx(), provider="cuda")

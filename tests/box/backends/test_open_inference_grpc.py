"""A gRPC server in this process: what is sent, and what is read."""

import sys
import threading

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import Batched, OpenInferenceBox, OpenInferenceGrpcBox, Retrying
from soda_tta.box.probabilities import softmax
from soda_tta.errors import BoxError


@pytest.mark.parametrize("typed", [True, False])
def test_raw_and_typed_responses_give_what_numpy_gives(
    grpc_server, images: np.ndarray, typed: bool
) -> None:
    grpc_server.typed = typed
    box = load_box(grpc_server.url)
    np.testing.assert_allclose(box(images), grpc_server.expected(images), atol=1e-6)
    assert box.input.size == (8, 8) and box.classes == 4
    assert isinstance(box, Batched) and isinstance(box.box, Retrying)


def test_the_two_protocols_give_the_same(grpc_server, server, images: np.ndarray) -> None:
    np.testing.assert_allclose(load_box(grpc_server.url)(images), load_box(server.url)(images))


@pytest.mark.parametrize("datatype", ["UINT8", "FP16"])
def test_bytes_and_half_precision_are_sent_as_such(grpc_server, images, datatype: str) -> None:
    grpc_server.datatype = datatype
    box = OpenInferenceGrpcBox(grpc_server.url, mean=[0.5] if datatype == "FP16" else [0])
    sent = np.rint(images * 255) if datatype == "UINT8" else images - 0.5
    expected = softmax(sent.mean((2, 3)) @ grpc_server.matrix)
    np.testing.assert_allclose(box(images), expected, atol=5e-3)


def test_requests_have_the_declared_size_and_come_back_in_order(grpc_server) -> None:
    images = np.random.default_rng(0).random((200, 3, 8, 8), dtype=np.float32)
    box = load_box(grpc_server.url, batch=16, workers=4)
    np.testing.assert_allclose(box(images), grpc_server.expected(images), atol=1e-6)
    assert sorted(grpc_server.asked) == [8] + [16] * 12
    assert len({request.id for request in grpc_server.requests}) == 13


def test_requests_are_in_flight_at_once(grpc_server, images: np.ndarray) -> None:
    together = threading.Barrier(4)

    def meet(context, response):
        together.wait(5)  # breaks unless all four are here at once
        return response

    grpc_server.faults = [meet] * 4
    load_box(grpc_server.url, workers=4)(images[:8])
    assert grpc_server.asked == [2] * 4


@pytest.mark.parametrize("fixed", [1, 4])
def test_a_fixed_batch_is_filled_up(grpc_server, images: np.ndarray, fixed: int) -> None:
    grpc_server.shape = [fixed, 3, 8, 8]
    np.testing.assert_allclose(
        load_box(grpc_server.url)(images[:6]), grpc_server.expected(images[:6]), atol=1e-6
    )
    assert set(grpc_server.asked) == {fixed}


def test_a_version_is_requested(grpc_server, images: np.ndarray) -> None:
    box = load_box(f"{grpc_server.url}/versions/7")
    box(images[:2])
    assert grpc_server.requests[0].model_version == "7"
    assert box.fingerprint() == f"{grpc_server.url}/versions/7 version 7 output probabilities"


@pytest.mark.parametrize("form", ["{root}/tiny/", "{root}/v2/models/tiny"])
def test_the_fingerprint_is_the_address_in_its_one_form(grpc_server, form: str) -> None:
    box = load_box(form.format(root=grpc_server.root))
    assert box.fingerprint() == f"{grpc_server.url} version 2 output probabilities"
    assert repr(box) == f"Batched(Retrying(OpenInferenceGrpcBox('{grpc_server.url}')))"


def test_several_outputs_need_a_name(grpc_server, images: np.ndarray) -> None:
    grpc_server.outputs["embedding"] = ("FP32", [-1, 512])
    with pytest.raises(BoxError, match=r"has the outputs probabilities, embedding; choose the one"):
        load_box(grpc_server.url)
    load_box(grpc_server.url, output="probabilities")(images)
    assert grpc_server.requests[0].outputs[0].name == "probabilities"


def test_a_model_that_returns_its_top_classes_is_refused(grpc_server) -> None:
    grpc_server.outputs["classes"] = ("INT64", [-1, 4])
    with pytest.raises(BoxError, match="returns its top classes, with their indices in 'classes'"):
        load_box(grpc_server.url, output="probabilities")


def test_an_input_that_is_not_an_image_is_refused(grpc_server) -> None:
    grpc_server.datatype = "BYTES"
    with pytest.raises(BoxError, match="takes BYTES; this package sends FP32, FP16, UINT8"):
        load_box(grpc_server.url)


def test_json_is_not_an_option(grpc_server) -> None:
    with pytest.raises(BoxError, match="does not have the option binary"):
        load_box(grpc_server.url, binary=False)


def test_the_options_are_those_of_http_except_for_json() -> None:
    assert OpenInferenceBox.options() - OpenInferenceGrpcBox.options() == {"binary"}
    assert OpenInferenceGrpcBox.options() <= OpenInferenceBox.options()


@pytest.mark.parametrize("missing", ["grpc", "tritonclient.grpc"])
def test_a_missing_library_is_named(monkeypatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BoxError, match=r"pip install 'soda-tta\[grpc\]'"):
        load_box("grpc://host:8001/tiny")

"""Our client against Triton and MLServer: the same probabilities as ONNX Runtime gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta import adapt, load_box
from soda_tta.box import Ledger, Metered, OnnxBox
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.protocols.open_inference import decode_request

pytestmark = pytest.mark.peers

IMAGES = np.random.default_rng(1).random((5, 3, 16, 16), dtype=np.float32)
MANY = np.random.default_rng(2).random((200, 3, 16, 16), dtype=np.float32)


@pytest.fixture(params=["triton_url", "mlserver_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize(
    ("server", "binary"), [("triton_url", False), ("triton_url", True), ("mlserver_url", False)]
)
def test_a_server_gives_the_same_probabilities_as_onnx_runtime(
    server: str, binary: bool, small_model: Path, request
) -> None:
    box = load_box(request.getfixturevalue(server), binary=binary)
    np.testing.assert_allclose(box(IMAGES), OnnxBox(small_model)(IMAGES), atol=1e-5, rtol=0)
    assert box.classes == 10


@pytest.mark.parametrize(("server", "binary"), [("triton_url", True), ("mlserver_url", False)])
def test_tensors_are_sent_in_the_form_the_server_prefers(
    server: str, binary: bool, small_model: Path, request
) -> None:
    box = load_box(request.getfixturevalue(server))
    assert box.box.box.binary is binary
    np.testing.assert_allclose(box(IMAGES), OnnxBox(small_model)(IMAGES), atol=1e-5, rtol=0)


def test_the_server_declares_what_the_file_declares(url: str, small_model: Path) -> None:
    assert load_box(url).input == OnnxBox(small_model).input


def test_responses_of_concurrent_requests_are_in_order(url: str, small_model: Path) -> None:
    ledger = Ledger()
    box = Metered(load_box(url, batch=7, workers=4), ledger, "serve")
    np.testing.assert_allclose(box(MANY), OnnxBox(small_model)(MANY), atol=1e-5, rtol=0)
    assert ledger.total == 200


def test_normalisation_and_resizing_happen_in_the_client(url: str, small_model: Path) -> None:
    stated = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4), "channels": "BGR"}
    large = np.random.default_rng(3).random((3, 3, 20, 24), dtype=np.float32)
    expected = OnnxBox(small_model, **stated)(large)
    np.testing.assert_allclose(load_box(url, **stated)(large), expected, atol=1e-5, rtol=0)


def test_a_wrong_name_is_a_clear_error(url: str) -> None:
    with pytest.raises(
        BoxError, match=r"letters answered 40\d: .*check the name of the model"
    ) as caught:
        load_box(url.replace("digits", "letters"))
    assert not isinstance(caught.value, BoxUnavailable)


def test_an_output_that_does_not_exist_is_a_box_error(triton_url: str) -> None:
    with pytest.raises(BoxError, match="scores"):
        load_box(triton_url, output="scores")(IMAGES)


def test_a_request_the_server_refuses_is_a_box_error_with_its_message(triton_url: str) -> None:
    with pytest.raises(
        BoxError, match=r"digits answered 400: .*batch-size must be <= 64"
    ) as caught:
        load_box(triton_url, batch=200, workers=1)(MANY)  # its limit is 64
    assert not isinstance(caught.value, BoxUnavailable)


def images_in(content: bytes, headers: Mapping[str, str]) -> int:
    """The number of images in one request."""
    (images,) = decode_request(content, headers).inputs
    return len(images.array)


def test_a_run_counts_every_image_that_is_sent_and_nothing_else(
    url: str, small_model: Path
) -> None:
    images = MANY[:48]
    box = load_box(url)
    sent: list[int] = []
    client = box.box.box.client
    exchange = client.exchange

    def counted(verb: str, address: str, **request: Any) -> Any:
        if verb == "POST":
            sent.append(images_in(request["content"], request["headers"]))
        return exchange(verb, address, **request)

    client.exchange = counted
    run = adapt(images, box, method="soda", epochs=1, batch=16, budget=50)
    assert run.stopped == "finished"
    assert run.ledger.total == sum(sent) > 2 * len(images)
    np.testing.assert_allclose(run.before, OnnxBox(small_model)(images), atol=1e-5, rtol=0)
    assert run.probabilities.shape == (48, 10)

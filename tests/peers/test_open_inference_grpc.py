"""Our client over gRPC against Triton and MLServer: the same probabilities as over HTTP."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from soda_tta import adapt, load_box
from soda_tta.box import Ledger, Metered, OnnxBox
from soda_tta.errors import BoxError, BoxUnavailable

pytestmark = pytest.mark.peers

IMAGES = np.random.default_rng(1).random((5, 3, 16, 16), dtype=np.float32)
MANY = np.random.default_rng(2).random((200, 3, 16, 16), dtype=np.float32)


@pytest.fixture(params=["triton_grpc_url", "mlserver_grpc_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize("name", ["triton", "mlserver"])
def test_grpc_and_http_give_the_same_probabilities(name: str, request) -> None:
    peer = request.getfixturevalue(name)
    over_http, over_grpc = load_box(peer.http), load_box(peer.grpc)
    np.testing.assert_allclose(over_grpc(MANY), over_http(MANY), atol=1e-6, rtol=0)
    assert over_grpc.input == over_http.input and over_grpc.classes == 10
    assert over_grpc.box.box.version == over_http.box.box.version


def test_responses_of_concurrent_requests_are_in_order(url: str, small_model: Path) -> None:
    ledger = Ledger()
    box = Metered(load_box(url, batch=7, workers=4), ledger, "serve")
    np.testing.assert_allclose(box(MANY), OnnxBox(small_model)(MANY), atol=1e-5, rtol=0)
    assert ledger.total == 200
    assert box.box.box.box.echoes  # both return the id of a request


def test_a_wrong_name_is_a_clear_error(url: str) -> None:
    with pytest.raises(BoxError, match=r"letters answered .*check the name of the model") as caught:
        load_box(url.replace("digits", "letters"))
    assert not isinstance(caught.value, BoxUnavailable)


@pytest.mark.parametrize("name", ["triton", "mlserver"])
def test_the_http_port_is_recognised(name: str, request) -> None:
    peer = request.getfixturevalue(name)
    port = peer.http.split("/")[2]
    with pytest.raises(BoxError, match=r"check the port \(HTTP and gRPC have one each\)"):
        load_box(f"grpc://{port}/digits", retries=0)


def test_an_output_that_does_not_exist_is_a_box_error(triton_grpc_url: str) -> None:
    with pytest.raises(BoxError, match="scores") as caught:
        load_box(triton_grpc_url, output="scores")(IMAGES)
    assert not isinstance(caught.value, BoxUnavailable)


def test_more_images_than_the_server_takes_are_refused_with_its_message(
    triton_grpc_url: str,
) -> None:
    with pytest.raises(
        BoxError, match=r"INVALID_ARGUMENT: .*batch-size must be <= 64.*fewer per request"
    ):
        load_box(triton_grpc_url, batch=200, workers=1)(MANY)


def test_a_message_that_the_server_finds_too_large_names_what_fits(mlserver_grpc_url: str) -> None:
    images = np.zeros((1400, 3, 16, 16), np.float32)  # 4.1 MB; its limit is 4
    with pytest.raises(BoxError, match=r"RESOURCE_EXHAUSTED.*per request \(batch=1364\)"):
        load_box(mlserver_grpc_url, batch=2000, workers=1)(images)
    assert load_box(mlserver_grpc_url, batch=1364, workers=1)(images).shape == (1400, 10)


def test_tls_works_with_the_authority_and_not_without(encrypted_triton, small_model: Path) -> None:
    url, authority = encrypted_triton
    box = load_box(url, certificate_authority=authority)
    np.testing.assert_allclose(box(IMAGES), OnnxBox(small_model)(IMAGES), atol=1e-5, rtol=0)
    with pytest.raises(BoxError, match="is not trusted"):
        load_box(url)


def test_a_run_counts_every_image(url: str, small_model: Path) -> None:
    images = MANY[:32]
    box = load_box(url)
    sent: list[int] = []
    client = box.box.box.client
    call = client.call

    def counted(method, request):
        if method == "ModelInfer":
            sent.append(client.messages.ModelInferRequest.FromString(request).inputs[0].shape[0])
        return call(method, request)

    client.call = counted
    run = adapt(images, box, method="soda", epochs=1, batch=16, budget=50)
    assert run.ledger.total == sum(sent) > 2 * len(images)
    np.testing.assert_allclose(run.before, OnnxBox(small_model)(images), atol=1e-5, rtol=0)

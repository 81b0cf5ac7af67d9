"""Our client against the servers that users have: Triton and MLServer answer as this process does."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import numpy as np
import pytest

from soda_tta import adapt, load_box
from soda_tta.box import Ledger, Metered, OnnxBox
from soda_tta.errors import BoxError, BoxUnavailable

pytestmark = pytest.mark.peers

IMAGES = np.random.default_rng(1).random((5, 3, 16, 16), dtype=np.float32)
MANY = np.random.default_rng(2).random((200, 3, 16, 16), dtype=np.float32)


@pytest.fixture(params=["triton_url", "mlserver_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize(
    ("server", "binary"), [("triton_url", False), ("triton_url", True), ("mlserver_url", False)]
)
def test_a_server_answers_as_this_process_does(
    server: str, binary: bool, small_model: Path, request
) -> None:
    box = load_box(request.getfixturevalue(server), binary=binary)
    np.testing.assert_allclose(box(IMAGES), OnnxBox(small_model)(IMAGES), atol=1e-5, rtol=0)
    assert box.classes == 10


@pytest.mark.parametrize(("server", "binary"), [("triton_url", True), ("mlserver_url", False)])
def test_tensors_travel_as_the_server_prefers(
    server: str, binary: bool, small_model: Path, request
) -> None:
    box = load_box(request.getfixturevalue(server))
    assert box.box.box.binary is binary
    np.testing.assert_allclose(box(IMAGES), OnnxBox(small_model)(IMAGES), atol=1e-5, rtol=0)


def test_what_the_server_declares_is_what_the_file_declares(url: str, small_model: Path) -> None:
    assert load_box(url).input == OnnxBox(small_model).input


def test_two_hundred_images_in_concurrent_requests_come_back_in_order(
    url: str, small_model: Path
) -> None:
    ledger = Ledger()
    box = Metered(load_box(url, batch=7, workers=4), ledger, "serve")
    np.testing.assert_allclose(box(MANY), OnnxBox(small_model)(MANY), atol=1e-5, rtol=0)
    assert ledger.total == 200


def test_normalisation_and_resizing_happen_on_our_side(url: str, small_model: Path) -> None:
    stated = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4), "channels": "BGR"}
    large = np.random.default_rng(3).random((3, 3, 20, 24), dtype=np.float32)
    theirs, ours = load_box(url, **stated)(large), OnnxBox(small_model, **stated)(large)
    np.testing.assert_allclose(theirs, ours, atol=1e-5, rtol=0)


def test_a_wrong_name_is_a_clear_error(url: str) -> None:
    with pytest.raises(
        BoxError, match=r"letters answered 40\d: .*is the model's name right"
    ) as caught:
        load_box(url.replace("digits", "letters"))
    assert not isinstance(caught.value, BoxUnavailable)


def test_an_output_that_does_not_exist_is_a_box_error(triton_url: str) -> None:
    with pytest.raises(BoxError, match="scores"):
        load_box(triton_url, output="scores")(IMAGES)


def test_a_request_the_server_refuses_is_a_box_error_in_its_own_words(triton_url: str) -> None:
    with pytest.raises(
        BoxError, match=r"digits answered 400: .*batch-size must be <= 64"
    ) as caught:
        load_box(triton_url, batch=200)(MANY)  # its limit is 64
    assert not isinstance(caught.value, BoxUnavailable)


def images_in(request: httpx.Request) -> int:
    """How many images one request carries, by what it says itself."""
    body = request.read()
    described = json.loads(
        body[: int(request.headers.get("Inference-Header-Content-Length", len(body)))]
    )
    return int(described["inputs"][0]["shape"][0])


def test_a_run_pays_for_every_image_that_leaves_and_for_nothing_else(
    url: str, small_model: Path
) -> None:
    images, box, sent = MANY[:48], load_box(url), []
    box.box.box.client.event_hooks = {"request": [lambda request: sent.append(images_in(request))]}
    run = adapt(images, box, method="soda", epochs=1, batch=16, budget=50)
    assert run.stopped == "finished"
    assert run.ledger.total == sum(sent) > 2 * len(images)
    np.testing.assert_allclose(run.before, OnnxBox(small_model)(images), atol=1e-5, rtol=0)
    assert run.probabilities.shape == (48, 10)

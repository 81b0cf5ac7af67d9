"""An HTTP server in this process: what is sent, and in which form."""

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import OpenInferenceBox
from soda_tta.box.probabilities import softmax
from soda_tta.errors import BoxError


@pytest.mark.parametrize("binary", [True, False])
def test_json_and_binary_tensors_give_what_numpy_gives(
    server, images: np.ndarray, binary: bool
) -> None:
    box = OpenInferenceBox(server.url, binary=binary)
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)
    sent_in_binary = "inference-header-content-length" in server.headers[-1]
    assert sent_in_binary == binary


@pytest.mark.parametrize("offered", [True, False])
def test_binary_is_used_if_the_server_offers_it(server, images: np.ndarray, offered: bool) -> None:
    server.binary = offered
    assert OpenInferenceBox(server.url).binary == offered


def test_a_server_that_does_not_describe_itself_gets_json(server, images: np.ndarray) -> None:
    server.pages["/v2"] = lambda handler: handler.reply(b"", status=404)
    box = OpenInferenceBox(server.url)
    assert box.binary is False
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)


def test_bytes_and_half_precision_are_sent_as_such(server, images: np.ndarray) -> None:
    for datatype, tolerance in (("UINT8", 1e-3), ("FP16", 1e-3)):
        server.datatype = datatype
        got = OpenInferenceBox(
            server.url, binary=True, pixel_range=1 if datatype == "FP16" else None
        )(images)
        scale = 255 if datatype == "UINT8" else 1
        sent = np.rint(images * scale) if scale == 255 else images
        np.testing.assert_allclose(
            got, softmax(sent.mean((2, 3)) @ server.matrix), atol=tolerance * 5
        )
    server.datatype = "UINT8"
    np.testing.assert_allclose(
        OpenInferenceBox(server.url, binary=False)(images),
        OpenInferenceBox(server.url, binary=True)(images),
        atol=1e-6,
    )


def test_half_precision_needs_binary(server) -> None:
    server.datatype = "FP16"
    with pytest.raises(BoxError, match="takes FP16, which JSON cannot carry"):
        OpenInferenceBox(server.url)


def test_two_hundred_images_go_out_in_requests_of_batch_and_come_back_in_order(server) -> None:
    images = np.random.default_rng(0).random((200, 3, 8, 8), dtype=np.float32)
    box = load_box(server.url, batch=16, workers=4)
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)
    assert sorted(server.asked) == [8] + [16] * 12


def test_stated_and_declared_facts_shape_the_request(server, images: np.ndarray) -> None:
    box = load_box(server.url, mean=(0.5,), std=(0.25,), channels="BGR")
    np.testing.assert_allclose(
        box(images), server.expected((images[:, ::-1] - 0.5) / 0.25), atol=1e-5
    )
    assert box.input.size == (8, 8)


def test_logits_must_be_stated(server, images: np.ndarray) -> None:
    server.outputs = ["logits"]
    with pytest.raises(BoxError, match="logits=True"):
        load_box(server.url)(images)
    box = load_box(server.url, logits=True, partial=True)
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)
    assert box.logits is True and box.partial is True
    assert OpenInferenceBox(server.url, logits=True).logits is True


def test_several_outputs_need_a_name(server, images: np.ndarray) -> None:
    server.outputs = ["logits", "probabilities"]
    with pytest.raises(
        BoxError, match=r"has the outputs logits, probabilities; choose the one .*\(output='NAME'\)"
    ):
        load_box(server.url)
    np.testing.assert_allclose(
        load_box(server.url, output="probabilities")(images), server.expected(images), atol=1e-6
    )


@pytest.mark.parametrize("fixed", [1, 4])
def test_a_fixed_batch_is_filled_up(server, images: np.ndarray, fixed: int) -> None:
    server.shape = [fixed, 3, 8, 8]
    np.testing.assert_allclose(
        load_box(server.url)(images[:6]), server.expected(images[:6]), atol=1e-6
    )
    assert set(server.asked) == {fixed}


def test_the_fingerprint_is_the_address_the_version_and_the_output(server) -> None:
    assert (
        load_box(server.url + "/").fingerprint() == f"{server.url} version 2 output probabilities"
    )

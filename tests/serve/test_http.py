"""The proxy speaks the protocol, adapts what it understands, and leaves everything else alone."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import numpy as np
import pytest

from soda_tta.adaptors import Bank
from soda_tta.protocols.open_inference import decode_response, encode_request
from soda_tta.protocols.tensors import Tensor
from soda_tta.serve.live import FixedAdaptor

from .conftest import PATH, PATIENCE, Darker, message


def halved(tensor: Any) -> Any:
    """What `Darker` does, in the units of the tensor."""
    pixels = tensor * 0.25 + 0.5
    bright = pixels.mean(axis=(1, 2, 3)) > 0.5
    pixels[bright] /= 2
    return ((pixels - 0.5) / 0.25).astype(np.float32)


@pytest.mark.parametrize("path", ["/v2", "/v2/models/tiny", "/v2/models/tiny/versions/1"])
def test_metadata_is_that_of_the_model(proxied, direct, path: str) -> None:
    assert proxied().ask("GET", path)[::2] == direct.ask("GET", path)[::2]


def test_health_is_that_of_the_model(proxied, direct) -> None:
    proxy = proxied()
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/tiny/ready"):
        assert proxy.ask("GET", path)[0] == 200
    direct.proxy.draining = True
    assert proxy.ask("GET", "/v2/health/live")[0] == 200
    assert proxy.ask("GET", "/v2/health/ready")[0] == 503


@pytest.mark.parametrize("binary", [True, False])
def test_images_are_adapted_and_asked_once(proxied, direct, tensor, binary: bool) -> None:
    proxy = proxied(Darker())
    asked = direct.count("upstream_requests_total")
    answers = proxy.infer(tensor, binary=binary)
    np.testing.assert_allclose(answers, direct.infer(halved(tensor)), atol=1e-5)
    assert np.abs(answers - direct.infer(tensor)).max() > 0.01
    assert direct.count("upstream_requests_total") == asked + 3
    assert proxy.count("images_total[adapted]") == 2
    assert proxy.count("images_total[unfamiliar]") == 2
    assert proxy.count("upstream_queries_total") == 4


@pytest.mark.parametrize("binary", [True, False])
def test_unchanged_images_are_forwarded_byte_for_byte(proxied, direct, tensor, binary) -> None:
    bodies = []
    send = direct.proxy.upstream.reply
    direct.proxy.upstream.reply = lambda *call: bodies.append(call[3]) or send(*call)
    body, headers = message(tensor, binary=binary, id="a\u00e9")
    for live in (FixedAdaptor(), FixedAdaptor(Bank().build())):
        assert proxied(live).ask("POST", PATH, body, headers)[0] == 200
    assert bodies == [body, body]


def test_unchanged_rows_of_a_changed_batch_keep_their_bytes(proxied, direct, tensor) -> None:
    bodies = []
    send = direct.proxy.upstream.reply
    direct.proxy.upstream.reply = lambda *call: bodies.append(call[3]) or send(*call)
    body, headers = message(tensor)
    proxied(Darker()).ask("POST", PATH, body, headers)
    half = tensor.nbytes // 2
    assert bodies[0][:-half] == body[:-half] and len(bodies[0]) == len(body)
    assert bodies[0][-half:] != body[-half:]


def test_outputs_are_binary_per_output(proxied, tensor) -> None:
    body, headers = encode_request([Tensor("images", tensor)], binary=True)
    _, received, content = proxied().ask("POST", PATH, body, headers)
    assert "inference-header-content-length" not in received
    assert json.loads(content)["outputs"][0]["data"]
    marked = body.replace(b'{"inputs"', b'{"parameters": {"binary_data_output": true}, "inputs"')
    grown = int(headers["Inference-Header-Content-Length"]) + len(marked) - len(body)
    headers["Inference-Header-Content-Length"] = str(grown)
    status, received, content = proxied().ask("POST", PATH, marked, headers)
    assert status == 200 and int(received["inference-header-content-length"]) < len(content)
    assert decode_response(content, received)["probabilities"].shape == (4, 4)


def test_id_and_version_paths_pass(proxied, tensor) -> None:
    body, headers = message(tensor, id="request 7")
    proxy = proxied(Darker())
    _, _, content = proxy.ask("POST", "/v2/models/tiny/versions/1/infer", body, headers)
    assert b'"id": "request 7"' in content and b'"model_version": "1"' in content
    assert proxy.count("images_total[adapted]") == 2


def test_another_model_or_tensor_or_datatype_passes_untouched(proxied, tensor) -> None:
    live = Darker()
    proxy = proxied(live)
    body, headers = message(tensor)
    status, _, content = proxy.ask("POST", "/v2/models/other/infer", body, headers)
    assert status == 404 and b"the model is 'tiny'" in content
    body, headers = encode_request([Tensor("sound", tensor)], binary=True)
    assert proxy.ask("POST", PATH, body, headers)[0] == 400
    body, headers = encode_request([Tensor("images", tensor.astype(np.float64))], binary=True)
    assert proxy.ask("POST", PATH, body, headers)[0] == 400
    assert live.keys == []


@pytest.mark.parametrize("value", [np.nan, np.inf, 40.0])
def test_what_cannot_be_pixels_passes_untouched(proxied, direct, tensor, value: float) -> None:
    tensor[0, 0, 0, 0] = value
    live = Darker()
    proxy = proxied(live)
    np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
    assert live.keys == [] and proxy.count("images_total[not images]") == 4


def test_the_learner_gets_images_as_they_came_and_the_answers(proxied, tensor) -> None:
    live = Darker()
    proxy = proxied(live, key_header="X-Camera-Id")
    answers = proxy.infer(tensor, **{"X-Camera-Id": "gate"})
    assert live.got.wait(PATIENCE)
    proxy.proxy.learner.close()
    ((images, probabilities, key),) = live.arrivals
    np.testing.assert_allclose(images, tensor * 0.25 + 0.5, atol=1e-6)
    np.testing.assert_allclose(probabilities, answers, atol=1e-6)
    assert key == "gate" and live.keys == ["gate"] and live.saved == 1
    ((routes, client),) = live.origins
    assert routes.familiar.tolist() == [False, False, True, True] and client == "127.0.0.1"


def test_a_parameter_can_name_the_source(proxied, tensor) -> None:
    live = Darker()
    body, headers = message(tensor, binary=False)
    body = body.replace(b'{"inputs"', b'{"parameters": {"camera": 7}, "inputs"')
    assert proxied(live, key_parameter="camera").ask("POST", PATH, body, headers)[0] == 200
    assert live.keys == ["7"]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_compressed_requests_are_adapted_too(proxied, direct, tensor, pack) -> None:
    proxy = proxied(Darker())
    body, headers = message(tensor)
    headers["Content-Encoding"] = "gzip" if pack is gzip.compress else "deflate"
    status, received, content = proxy.ask("POST", PATH, pack(body), headers)
    assert status == 200
    answers = decode_response(content, received)["probabilities"]
    np.testing.assert_allclose(answers, direct.infer(halved(tensor)), atol=1e-5)


def test_what_cannot_be_decompressed_passes_untouched(proxied, direct, tensor) -> None:
    live = Darker()
    proxy = proxied(live)
    body, headers = message(tensor)
    for packed in (body, gzip.compress(bytes(2**25)), gzip.compress(body)[:-20]):
        encoded = {**headers, "Content-Encoding": "gzip"}
        assert proxy.ask("POST", PATH, packed, encoded)[0] == 400  # the model's own error
    assert live.keys == [] and proxy.infer(tensor).shape == (4, 4)


def test_a_fast_client_can_send_requests_in_a_row_on_one_connection(proxied, tensor) -> None:
    import http.client

    proxy = proxied(Darker())
    body, headers = message(tensor)
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port)
    contents = set()
    for _ in range(20):
        connection.request("POST", PATH, body, headers)
        contents.add(connection.getresponse().read())
    connection.close()
    assert len(contents) == 1

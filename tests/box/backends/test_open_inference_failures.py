"""Every way a model server can fail: busy, slow, gone, or sending invalid responses."""

import socket
import time

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import OpenInferenceBox
from soda_tta.errors import BoxError, BoxUnavailable


def busy(status: int, **headers: str):
    return lambda handler, _: handler.reply({"error": "too many requests"}, headers, status)


def test_429_is_retried_after_the_wait_the_server_asks_for(
    server, images: np.ndarray, patient: list[float]
) -> None:
    server.faults = [busy(429, **{"Retry-After": "7"})]
    np.testing.assert_allclose(
        load_box(server.url, workers=1)(images), server.expected(images), atol=1e-6
    )
    assert patient == [7.0]
    assert server.asked == [50, 50]


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504])
def test_a_busy_server_is_retried(
    server, images: np.ndarray, patient: list[float], status: int
) -> None:
    server.faults = [busy(status)] * 2
    np.testing.assert_allclose(load_box(server.url)(images), server.expected(images), atol=1e-6)
    assert len(patient) == 2


def test_only_the_request_that_failed_is_retried(
    server, images: np.ndarray, patient: list[float]
) -> None:
    server.faults = [busy(503)]
    np.testing.assert_allclose(
        load_box(server.url, batch=10)(images), server.expected(images), atol=1e-6
    )
    assert server.asked == [10] * 6


def test_a_server_that_stays_busy_is_given_up_with_its_own_message(
    server, images, patient: list[float]
) -> None:
    server.faults = [busy(503)] * 99
    with pytest.raises(
        BoxUnavailable, match=r"/infer answered 503: too many requests\. Gave up after 5 attempts\."
    ):
        load_box(server.url, workers=1)(images)
    assert len(server.asked) == 5


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2037 07:28:00 GMT", "soon", "-3", "nan"])
def test_a_retry_after_that_is_not_in_seconds_is_ignored(
    server, images, patient, header: str
) -> None:
    server.faults = [busy(429, **{"Retry-After": header})]
    load_box(server.url)(images)
    assert 0 <= patient[0] <= 0.5


def test_a_server_that_hangs_is_unavailable_after_the_timeout(server, images: np.ndarray) -> None:
    server.faults = [lambda handler, _: server.closing.wait(10)]
    box = OpenInferenceBox(server.url, timeout=0.15)
    began = time.perf_counter()
    with pytest.raises(BoxUnavailable, match=r"/infer did not respond within 0.15 s .*timeout=0.6"):
        box(images)
    assert time.perf_counter() - began < 5


def test_a_server_that_hangs_once_is_retried(
    server, images: np.ndarray, patient: list[float]
) -> None:
    server.faults = [lambda handler, _: server.closing.wait(10)]
    np.testing.assert_allclose(
        load_box(server.url, timeout=0.2)(images), server.expected(images), atol=1e-6
    )


def hang_up(handler, _: object) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"outputs": [')
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def test_a_response_that_breaks_off_is_unavailable_and_retried(server, images, patient) -> None:
    server.faults = [hang_up]
    with pytest.raises(BoxUnavailable, match="cannot be reached: "):
        OpenInferenceBox(server.url)(images)
    server.faults = [hang_up]
    np.testing.assert_allclose(load_box(server.url)(images), server.expected(images), atol=1e-6)


def test_a_server_that_dies_half_way_is_unavailable(
    server, images: np.ndarray, patient: list[float]
) -> None:
    box = load_box(server.url, timeout=0.2)
    box(images)
    server.http.shutdown()
    server.http.server_close()
    box.box.box.client.close()  # its kept connection
    with pytest.raises(BoxUnavailable, match=r"cannot be reached.*Gave up after 5 attempts"):
        box(images)


def test_an_address_without_a_server_is_unavailable() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(BoxUnavailable, match=r"cannot be reached: .*(refused|failed)"):
        load_box(f"http://127.0.0.1:{port}/v2/models/tiny")


@pytest.mark.parametrize("host", ["127.0.0.1:99999", "127.0.0.1:port", "[::1", "exa mple"])
def test_an_invalid_address_is_a_box_error(host: str) -> None:
    with pytest.raises(BoxError, match=r"is not a valid address|cannot be reached"):
        load_box(f"http://{host}/v2/models/tiny", timeout=0.2)


def spoiled(**changes: object):
    return lambda handler, correct: handler.reply(
        {"outputs": [{**correct["outputs"][0], **changes}]}
    )


def raw(body: bytes, **headers: str):
    return lambda handler, _: handler.reply(body, headers)


CUT_OFF = (
    b'{"outputs": [{"name": "probabilities", "datatype": "FP32", "shape": [50, 4], '
    b'"parameters": {"binary_data_size": 800}}]}'
)
INVALID_RESPONSES = {
    "HTML": (raw(b"<html>please log in</html>"), "not valid Open Inference Protocol"),
    "an empty body": (raw(b""), "not valid Open Inference Protocol"),
    "a JSON list": (raw(b"[]"), "not valid Open Inference Protocol"),
    "no outputs": (raw(b"{}"), "not valid Open Inference Protocol .KeyError: 'outputs'"),
    "outputs null": (raw(b'{"outputs": null}'), "not valid Open Inference Protocol"),
    "outputs that are strings": (
        raw(b'{"outputs": ["probabilities"]}'),
        "not valid Open Inference Protocol",
    ),
    "bytes that are not text": (raw(b"\xff\xfe\x00"), "not valid Open Inference Protocol"),
    "an invalid header length": (
        raw(b"{}", **{"Inference-Header-Content-Length": "x"}),
        "not valid Open Inference Protocol",
    ),
    "binary data cut off": (
        raw(CUT_OFF + b"1234", **{"Inference-Header-Content-Length": str(len(CUT_OFF))}),
        "not valid Open Inference Protocol .ValueError: buffer is smaller",
    ),
    "another output": (
        spoiled(name="embedding"),
        r"contains no output 'probabilities' \(it contains embedding\)",
    ),
    "integers": (
        spoiled(datatype="INT64", data=[1] * 200),
        r"returned INT64 values in 'probabilities'; class scores are FP16, FP32, FP64",
    ),
    "another shape": (spoiled(shape=[50, 5]), "not valid Open Inference Protocol .ValueError"),
    "too few rows": (spoiled(shape=[1, 4], data=[0.25] * 4), "1 rows for 50 images"),
    "one class": (spoiled(shape=[50, 1], data=[1.0] * 50), "1 class"),
    "NaN": (spoiled(data=[float("nan")] * 200), "NaN or infinity"),
    "null for NaN": (spoiled(data=[None] * 200), "NaN or infinity"),
    "text": (spoiled(datatype="BYTES", data=["cat"] * 200), "not valid Open Inference Protocol"),
    "logits": (spoiled(data=[1.0] * 200), "sum to 4; if these are logits, pass logits=True"),
    "500": (busy(500), "answered 500: too many requests"),
    "400 in plain text": (
        lambda handler, _: handler.reply(b"shape   is\nwrong", status=400),
        "answered 400: shape is wrong",
    ),
    "a redirect": (
        lambda handler, _: handler.reply(b"", {"Location": "http://127.0.0.1:1/"}, 307),
        "answered 307",
    ),
}


@pytest.mark.parametrize(("fault", "message"), INVALID_RESPONSES.values(), ids=INVALID_RESPONSES)
def test_an_invalid_response_is_a_box_error_and_not_retried(
    server, images, patient, fault, message: str
) -> None:
    server.faults = [fault]
    with pytest.raises(BoxError, match=message) as caught:
        load_box(server.url, workers=1)(images)
    assert not isinstance(caught.value, BoxUnavailable)
    assert len(server.asked) == 1 and patient == []


TENSOR = {"name": "images", "datatype": "FP32", "shape": [-1, 3, 8, 8]}
BAD_METADATA = {
    "HTML": (
        lambda handler: handler.reply(b"<html>"),
        "did not answer in JSON; does the server speak",
    ),
    "a list": ([1], "did not answer with a JSON object"),
    "two inputs": ({"inputs": [TENSOR, TENSOR]}, "has 2 inputs"),
    "no inputs": ({"name": "tiny"}, "has 0 inputs"),
    "an input that is a string": (
        {"inputs": ["images"]},
        "does the server speak the Open Inference Protocol",
    ),
    "no shape": (
        {"inputs": [{"name": "images", "datatype": "FP32"}]},
        "does the server speak the Open Inference Protocol",
    ),
    "text": (
        {"inputs": [{**TENSOR, "datatype": "BYTES"}]},
        "takes BYTES; this package sends FP32, FP16, UINT8",
    ),
    "a flat shape": (
        {"inputs": [{**TENSOR, "shape": [-1, 784]}]},
        "an image model takes four dimensions",
    ),
    "no outputs": ({"inputs": [TENSOR]}, r"has the outputs \(none\)"),
    "outputs without names": (
        {"inputs": [TENSOR], "outputs": [{}]},
        "does the server speak the Open Inference Protocol",
    ),
}


@pytest.mark.parametrize(("page", "message"), BAD_METADATA.values(), ids=BAD_METADATA)
def test_invalid_metadata_is_refused_when_the_model_is_loaded(
    server, page: object, message: str
) -> None:
    server.pages["/v2/models/tiny"] = page
    with pytest.raises(BoxError, match=message):
        load_box(server.url)


def test_an_unknown_model_is_a_clear_error(server) -> None:
    with pytest.raises(
        BoxError,
        match=r"large answered 404: unknown: /v2/models/large; check the name of the model",
    ):
        load_box(f"{server.root}/v2/models/large")

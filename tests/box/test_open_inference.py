"""A real HTTP server in this process: what travels, and what is made of every way a server can fail."""

import socket
import time
from pathlib import Path

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import OpenInferenceBox, Retrying
from soda_tta.box.box import softmax
from soda_tta.errors import BoxError, BoxUnavailable


def expected(server, images: np.ndarray) -> np.ndarray:
    return softmax(images.mean((2, 3)) @ server.matrix)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits of every retry, none of them really waited."""
    waits: list[float] = []
    monkeypatch.setitem(Retrying.__init__.__kwdefaults__, "sleep", waits.append)
    return waits


@pytest.mark.parametrize("binary", [True, False])
def test_json_and_binary_tensors_give_what_numpy_gives(server, images: np.ndarray, binary: bool) -> None:
    box = OpenInferenceBox(server.url, binary=binary)
    np.testing.assert_allclose(box(images), expected(server, images), atol=1e-6)
    carried_in_binary = "inference-header-content-length" in server.headers[-1]
    assert carried_in_binary == binary


@pytest.mark.parametrize("offered", [True, False])
def test_binary_is_used_where_the_server_offers_it(server, images: np.ndarray, offered: bool) -> None:
    server.binary = offered
    assert OpenInferenceBox(server.url).binary == offered


def test_a_server_that_does_not_describe_itself_is_asked_in_json(server, images: np.ndarray) -> None:
    server.pages["/v2"] = lambda handler: handler.reply(b"", status=404)
    box = OpenInferenceBox(server.url)
    assert box.binary is False
    np.testing.assert_allclose(box(images), expected(server, images), atol=1e-6)


def test_bytes_and_half_precision_travel_as_what_they_are(server, images: np.ndarray) -> None:
    for datatype, tolerance in (("UINT8", 1e-3), ("FP16", 1e-3)):
        server.datatype = datatype
        got = OpenInferenceBox(server.url, binary=True, pixel_range=1 if datatype == "FP16" else None)(images)
        scale = 255 if datatype == "UINT8" else 1
        sent = np.rint(images * scale) if scale == 255 else images
        np.testing.assert_allclose(got, softmax(sent.mean((2, 3)) @ server.matrix), atol=tolerance * 5)
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
    np.testing.assert_allclose(box(images), expected(server, images), atol=1e-6)
    assert sorted(server.asked) == [8] + [16] * 12


def test_what_is_stated_and_declared_shapes_the_request(server, images: np.ndarray) -> None:
    box = load_box(server.url, mean=(0.5,), std=(0.25,), channels="BGR")
    np.testing.assert_allclose(box(images), expected(server, (images[:, ::-1] - 0.5) / 0.25), atol=1e-5)
    assert box.input.size == (8, 8)


def test_logits_are_stated_and_told(server, images: np.ndarray) -> None:
    server.outputs = ["logits"]
    with pytest.raises(BoxError, match="--logits"):
        load_box(server.url)(images)
    box = load_box(server.url, logits=True)
    np.testing.assert_allclose(box(images), expected(server, images), atol=1e-6)
    assert box.logits is True


def test_several_outputs_need_a_name(server, images: np.ndarray) -> None:
    server.outputs = ["logits", "probabilities"]
    with pytest.raises(BoxError, match=r"has the outputs logits, probabilities; name one \(--output NAME\)"):
        load_box(server.url)
    np.testing.assert_allclose(
        load_box(server.url, output="probabilities")(images), expected(server, images), atol=1e-6
    )


@pytest.mark.parametrize("fixed", [1, 4])
def test_a_model_that_takes_a_fixed_number_of_images_gets_it(server, images: np.ndarray, fixed: int) -> None:
    server.shape = [fixed, 3, 8, 8]
    np.testing.assert_allclose(load_box(server.url)(images[:6]), expected(server, images[:6]), atol=1e-6)
    assert set(server.asked) == {fixed}


def test_the_fingerprint_is_the_address_and_the_version(server) -> None:
    assert load_box(server.url + "/").fingerprint() == f"{server.url} version 2"


# --- a server that is busy, slow or gone


def busy(status: int, **headers: str):
    return lambda handler, _: handler.reply({"error": "too many requests"}, headers, status)


def test_429_is_waited_out_as_long_as_the_server_asks(server, images: np.ndarray, patient: list[float]) -> None:
    server.faults = [busy(429, **{"Retry-After": "7"})]
    np.testing.assert_allclose(load_box(server.url)(images), expected(server, images), atol=1e-6)
    assert patient == [7.0]
    assert server.asked == [50, 50]


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504])
def test_a_busy_server_is_asked_again(server, images: np.ndarray, patient: list[float], status: int) -> None:
    server.faults = [busy(status)] * 2
    np.testing.assert_allclose(load_box(server.url)(images), expected(server, images), atol=1e-6)
    assert len(patient) == 2


def test_only_the_request_that_failed_is_asked_again(server, images: np.ndarray, patient: list[float]) -> None:
    server.faults = [busy(503)]
    np.testing.assert_allclose(load_box(server.url, batch=10)(images), expected(server, images), atol=1e-6)
    assert server.asked == [10] * 6


def test_a_server_that_stays_busy_is_given_up_with_its_own_words(server, images, patient: list[float]) -> None:
    server.faults = [busy(503)] * 99
    with pytest.raises(BoxUnavailable, match=r"/infer answered 503: too many requests Gave up after 5 attempts\."):
        load_box(server.url)(images)
    assert len(server.asked) == 5


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2037 07:28:00 GMT", "soon", "-3", "nan"])
def test_a_retry_after_that_is_no_number_of_seconds_is_absent(server, images, patient, header: str) -> None:
    server.faults = [busy(429, **{"Retry-After": header})]
    load_box(server.url)(images)
    assert 0 <= patient[0] <= 0.5


def test_a_server_that_hangs_is_left_after_the_timeout(server, images: np.ndarray) -> None:
    server.faults = [lambda handler, _: server.closing.wait(10)]
    box = OpenInferenceBox(server.url, timeout=0.15)
    began = time.perf_counter()
    with pytest.raises(BoxUnavailable, match=r"/infer did not answer within 0.15 s \(--timeout\)"):
        box(images)
    assert time.perf_counter() - began < 5


def test_a_server_that_hangs_once_is_asked_again(server, images: np.ndarray, patient: list[float]) -> None:
    server.faults = [lambda handler, _: server.closing.wait(10)]
    np.testing.assert_allclose(load_box(server.url, timeout=0.2)(images), expected(server, images), atol=1e-6)


def hang_up(handler, _: object) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"outputs": [')
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def garbled(handler, _: object) -> None:
    handler.reply(b"this is no gzip", {"Content-Encoding": "gzip"})


@pytest.mark.parametrize("fault", [hang_up, garbled])
def test_an_answer_that_breaks_off_is_unavailable_and_asked_again(server, images, patient, fault) -> None:
    server.faults = [fault]
    with pytest.raises(BoxUnavailable, match="cannot be reached: "):
        OpenInferenceBox(server.url)(images)
    server.faults = [fault]
    np.testing.assert_allclose(load_box(server.url)(images), expected(server, images), atol=1e-6)


def test_a_server_that_dies_half_way_is_unavailable(server, images: np.ndarray, patient: list[float]) -> None:
    box = load_box(server.url, timeout=0.2)
    box(images)
    server.http.shutdown()
    server.http.server_close()
    box.box.box.client.close()  # its kept connection
    box.box.box.client = type(box.box.box.client)(timeout=0.2)
    with pytest.raises(BoxUnavailable, match=r"cannot be reached.*Gave up after 5 attempts"):
        box(images)


def test_an_address_where_nobody_listens_is_unavailable_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(BoxUnavailable, match=r"cannot be reached: .*(refused|failed)"):
        load_box(f"http://127.0.0.1:{port}/v2/models/tiny")


@pytest.mark.parametrize("host", ["127.0.0.1:99999", "127.0.0.1:port", "[::1", "exa mple"])
def test_an_address_that_is_none_is_a_box_error(host: str) -> None:
    with pytest.raises(BoxError, match=r"is not an address|cannot be reached"):
        load_box(f"http://{host}/v2/models/tiny", timeout=0.2)


# --- a server that answers nonsense


def spoiled(**changes: object):
    return lambda handler, honest: handler.reply({"outputs": [{**honest["outputs"][0], **changes}]})


def raw(body: bytes, **headers: str):
    return lambda handler, _: handler.reply(body, headers)


NONSENSE = {
    "HTML": (raw(b"<html>please log in</html>"), "not Open Inference Protocol"),
    "an empty body": (raw(b""), "not Open Inference Protocol"),
    "a JSON list": (raw(b"[]"), "not Open Inference Protocol"),
    "no outputs": (raw(b"{}"), "not Open Inference Protocol .KeyError: 'outputs'"),
    "outputs null": (raw(b'{"outputs": null}'), "not Open Inference Protocol"),
    "outputs that are words": (raw(b'{"outputs": ["probabilities"]}'), "not Open Inference Protocol"),
    "bytes that are no text": (raw(b"\xff\xfe\x00"), "not Open Inference Protocol"),
    "a header length that is none": (
        raw(b"{}", **{"Inference-Header-Content-Length": "x"}),
        "not Open Inference",
    ),
    "binary data cut off": (
        raw(
            b'{"outputs": [{"name": "probabilities", "datatype": "FP32", "shape": [50, 4], "parameters": '
            b'{"binary_data_size": 800}}]}1234',
            **{"Inference-Header-Content-Length": "115"},
        ),
        "not Open Inference Protocol",
    ),
    "another output": (spoiled(name="embedding"), r"holds no output 'probabilities' \(it has embedding\)"),
    "another shape": (spoiled(shape=[50, 5]), "not Open Inference Protocol .ValueError"),
    "too few rows": (spoiled(shape=[1, 4], data=[0.25] * 4), "1 rows for 50 images"),
    "one class": (spoiled(shape=[50, 1], data=[1.0] * 50), "1 class"),
    "NaN": (spoiled(data=[float("nan")] * 200), "NaN or infinity"),
    "null for NaN": (spoiled(data=[None] * 200), "NaN or infinity"),
    "text": (spoiled(datatype="BYTES", data=["cat"] * 200), "not Open Inference Protocol"),
    "logits": (spoiled(data=[1.0] * 200), "sum to 4; if these are logits, pass --logits"),
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


@pytest.mark.parametrize(("fault", "sentence"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_a_box_error_that_is_not_asked_for_again(server, images, patient, fault, sentence: str) -> None:
    server.faults = [fault]
    with pytest.raises(BoxError, match=sentence) as caught:
        load_box(server.url)(images)
    assert not isinstance(caught.value, BoxUnavailable)
    assert len(server.asked) == 1 and patient == []


TENSOR = {"name": "images", "datatype": "FP32", "shape": [-1, 3, 8, 8]}
BAD_METADATA = {
    "HTML": (lambda handler: handler.reply(b"<html>"), "did not answer in JSON; does it speak"),
    "a list": ([1], "did not answer with a JSON object"),
    "two inputs": ({"inputs": [TENSOR, TENSOR]}, "declares 2 inputs"),
    "no inputs": ({"name": "tiny"}, "declares 0 inputs"),
    "an input that is a word": ({"inputs": ["images"]}, "does it speak the Open Inference Protocol"),
    "no shape": (
        {"inputs": [{"name": "images", "datatype": "FP32"}]},
        "does it speak the Open Inference Protocol",
    ),
    "text": (
        {"inputs": [{**TENSOR, "datatype": "BYTES"}]},
        "takes BYTES; this package sends FP32, FP16, UINT8",
    ),
    "a flat shape": ({"inputs": [{**TENSOR, "shape": [-1, 784]}]}, "an image model takes four dimensions"),
    "no outputs": ({"inputs": [TENSOR]}, r"has the outputs \(none\)"),
    "outputs without names": (
        {"inputs": [TENSOR], "outputs": [{}]},
        "does it speak the Open Inference Protocol",
    ),
}


@pytest.mark.parametrize(("page", "sentence"), BAD_METADATA.values(), ids=BAD_METADATA)
def test_a_model_that_cannot_be_understood_is_refused_when_it_is_loaded(server, page: object, sentence: str) -> None:
    server.pages["/v2/models/tiny"] = page
    with pytest.raises(BoxError, match=sentence):
        load_box(server.url)


def test_an_unknown_model_is_said_to_be(server) -> None:
    with pytest.raises(BoxError, match=r"large answered 404: unknown: /v2/models/large; is the model's name right"):
        load_box(f"{server.root}/v2/models/large")


# --- keys and certificates


def test_the_key_travels_as_a_bearer_token(server, images: np.ndarray, monkeypatch) -> None:
    server.key = {"Authorization": "Bearer s3cret"}
    monkeypatch.setenv("MODEL_KEY", "s3cret")
    box = load_box(server.url, api_key_env="MODEL_KEY")
    np.testing.assert_allclose(box(images), expected(server, images), atol=1e-6)
    assert "s3cret" not in repr(box) + box.fingerprint()


def test_the_key_travels_in_a_header_of_its_own(server, images: np.ndarray, monkeypatch) -> None:
    server.key = {"X-API-Key": "s3cret"}
    monkeypatch.setenv("MODEL_KEY", "s3cret")
    load_box(server.url, api_key_env="MODEL_KEY", api_key_header="X-API-Key")(images)
    assert "authorization" not in server.headers[-1]


def test_without_the_key_one_is_told_where_to_put_it(server) -> None:
    server.key = {"Authorization": "Bearer s3cret"}
    with pytest.raises(BoxError, match=r"answered 401: unauthorized; put the key in a variable .*\(--api-key-env\)"):
        load_box(server.url)


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_variable_that_is_not_set_is_named(server, monkeypatch, value: str | None) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MODEL_KEY", value)
    with pytest.raises(BoxError, match="the environment variable MODEL_KEY is not set"):
        load_box(server.url, api_key_env="MODEL_KEY")
    assert server.headers == []


def test_the_newline_at_the_end_of_a_key_file_does_no_harm(server, monkeypatch) -> None:
    server.key = {"Authorization": "Bearer s3cret"}
    monkeypatch.setenv("MODEL_KEY", "s3cret\n")
    load_box(server.url, api_key_env="MODEL_KEY")


@pytest.mark.parametrize("key", ["s3cret\nX-Admin: 1", "s3cret\x07", "s3crét"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(server, monkeypatch, key: str) -> None:
    monkeypatch.setenv("MODEL_KEY", key)
    with pytest.raises(BoxError, match="MODEL_KEY") as caught:
        load_box(server.url, api_key_env="MODEL_KEY")
    assert "s3cr" not in str(caught.value)
    assert server.headers == []


@pytest.mark.parametrize("binary", [True, False])
def test_tls_works_with_the_authority_that_is_named(tls_server, images: np.ndarray, binary: bool) -> None:
    server, authority = tls_server
    box = load_box(server.url, certificate_authority=authority, binary=binary)
    np.testing.assert_allclose(box(images), expected(server, images), atol=1e-6)


def test_tls_with_an_unknown_authority_is_refused_with_the_remedy(tls_server) -> None:
    server, _ = tls_server
    with pytest.raises(BoxError, match=r"(?i)certificate verify failed.*--ca") as caught:
        load_box(server.url)
    assert not isinstance(caught.value, BoxUnavailable)  # asking again will not help
    assert server.headers == []


def test_a_certificate_for_another_host_is_refused(tls_server) -> None:
    server, authority = tls_server
    with pytest.raises(BoxError, match=r"(?i)certificate verify failed.*localhost"):
        load_box(server.url.replace("127.0.0.1", "localhost"), certificate_authority=authority)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_certificate_file_that_is_none_is_a_clear_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BoxError, match=r"authority.pem cannot be read as a certificate file"):
        load_box("https://127.0.0.1:1/v2/models/tiny", certificate_authority=path)


def test_plain_http_to_a_tls_port_is_unavailable(tls_server) -> None:
    server, _ = tls_server
    with pytest.raises(BoxUnavailable, match="cannot be reached"):
        load_box(server.url.replace("https", "http"), timeout=0.5)

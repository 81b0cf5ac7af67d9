"""Every way a model server can fail over gRPC, and what a request costs that failed."""

import os
import signal
import socket
import time
from types import SimpleNamespace

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import Ledger, Meter, OpenInferenceGrpcBox
from soda_tta.box.addresses import GrpcAddress
from soda_tta.box.backends.grpc_errors import box_error
from soda_tta.cli.interrupt import stopped_like_ctrl_c
from soda_tta.cli.spelling import as_flags
from soda_tta.errors import BoxError, BoxUnavailable

COSTS = {"UNAVAILABLE": 50, "ABORTED": 50, "CANCELLED": 50, "RESOURCE_EXHAUSTED": 0}


@pytest.mark.parametrize("code", COSTS)
def test_a_status_that_passes_is_retried_and_billed_if_the_model_may_have_computed(
    grpc_server, failing, images: np.ndarray, patient: list[float], code: str
) -> None:
    grpc_server.faults = [failing(code)]
    ledger = Ledger(limit=100)
    rows = Meter(load_box(grpc_server.url, workers=1), ledger).asking("probe")(images)
    np.testing.assert_allclose(rows, grpc_server.expected(images), atol=1e-6)
    assert ledger.by_purpose().get("retried", 0) == COSTS[code]
    assert len(patient) == 1 and grpc_server.asked == [50, 50]


PERMANENT = {
    "INVALID_ARGUMENT": r"; check the size of the images, and try fewer per request \(batch=1\)",
    "NOT_FOUND": "; check the name of the model, and that it is ready",
    "UNAUTHENTICATED": "; put the key into an environment variable and name it",
    "PERMISSION_DENIED": "; put the key into an environment variable and name it",
    "UNIMPLEMENTED": "; does the server speak the Open Inference Protocol.* port",
    "FAILED_PRECONDITION": "$",
    "INTERNAL": "$",
    "UNKNOWN": "$",
    "DATA_LOSS": "$",
}


@pytest.mark.parametrize("code", PERMANENT)
def test_a_status_that_stays_is_an_error_with_its_remedy(
    grpc_server, failing, images, patient, code: str
) -> None:
    grpc_server.faults = [failing(code)]
    with pytest.raises(
        BoxError, match=f"tiny answered {code}: too many requests{PERMANENT[code]}"
    ) as got:
        load_box(grpc_server.url, workers=1)(images)
    assert not isinstance(got.value, BoxUnavailable)
    assert len(grpc_server.asked) == 1 and patient == []


@pytest.mark.parametrize(
    ("trailing", "wait"),
    [
        ({"retry_after": "7"}, 7),
        ({"grpc_retry_pushback_ms": "1500"}, 1.5),
        ({"retry_after": "x"}, 0),
    ],
)
def test_the_wait_that_the_server_asks_for_is_kept(
    grpc_server, failing, images, patient, trailing: dict[str, str], wait: float
) -> None:
    grpc_server.faults = [failing("RESOURCE_EXHAUSTED", **trailing)]
    load_box(grpc_server.url, workers=1)(images)
    assert wait <= patient[0] <= max(wait, 0.5)


def test_only_the_request_that_failed_is_retried(grpc_server, failing, images, patient) -> None:
    grpc_server.faults = [failing("UNAVAILABLE")]
    load_box(grpc_server.url, batch=10)(images)
    assert grpc_server.asked == [10] * 6


def test_a_server_that_stays_busy_is_given_up_with_its_own_message(
    grpc_server, failing, images, patient
) -> None:
    grpc_server.faults = [failing("UNAVAILABLE")] * 9
    with pytest.raises(
        BoxUnavailable, match=r"answered UNAVAILABLE: too many requests\. Gave up after 3 attempts"
    ):
        load_box(grpc_server.url, workers=1, retries=2)(images)
    assert len(grpc_server.asked) == 3


def hang(server):
    return lambda context, response: server.closing.wait(10) and response


def test_a_server_that_hangs_ends_at_the_deadline(grpc_server, images: np.ndarray) -> None:
    grpc_server.faults = [hang(grpc_server)]
    box = OpenInferenceGrpcBox(grpc_server.url, timeout=0.1)
    began = time.perf_counter()
    with pytest.raises(
        BoxUnavailable, match=r"tiny did not respond within 0.1 s .*timeout=0.4"
    ) as caught:
        box(images)
    assert time.perf_counter() - began < 5 and caught.value.sent


def test_a_server_that_accepts_and_says_nothing_ends_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"grpc://127.0.0.1:{deaf.getsockname()[1]}/tiny"
        with pytest.raises(BoxUnavailable, match=r"did not respond within 0\.1 s"):
            load_box(url, timeout=0.1, retries=0)


def test_a_server_that_dies_is_billed_as_long_as_images_may_have_reached_it(
    grpc_server, images: np.ndarray
) -> None:
    box = load_box(grpc_server.url, workers=1, retries=0)

    def die(context, response):
        grpc_server.server.stop(0)
        grpc_server.closing.wait(0.2)  # the call is cancelled meanwhile
        return response

    grpc_server.faults = [die]
    ledger = Ledger()
    with pytest.raises(BoxUnavailable):
        Meter(box, ledger).asking("probe")(images)
    assert ledger.by_purpose() == {"retried": 50}


def test_a_refused_connection_costs_nothing_and_is_tried_again(
    grpc_server, images: np.ndarray, patient: list[float]
) -> None:
    box = load_box(grpc_server.url, workers=1)
    client = box.box.box.client
    client.address = GrpcAddress.read("grpc://127.0.0.1:1/tiny")
    client.expect(client.most)
    ledger = Ledger()
    with pytest.raises(BoxUnavailable, match=r"cannot be reached: .*refused.*5 attempts"):
        Meter(box, ledger).asking("probe")(images)
    assert ledger.by_purpose() == {}


def test_a_server_that_comes_back_is_reached_again(grpc_server, images: np.ndarray) -> None:
    box = OpenInferenceGrpcBox(grpc_server.url)
    grpc_server.server.stop(0).wait()
    with pytest.raises(BoxUnavailable):
        box(images)
    with type(grpc_server)(port=grpc_server.port) as restarted:
        time.sleep(0.2)  # the library waits before it connects again
        np.testing.assert_allclose(box(images), restarted.expected(images), atol=1e-6)


def changed(**fields):
    """A fault: the one output with other fields."""

    def fault(context, response):
        for name, value in fields.items():
            if name == "shape":
                del response.outputs[0].shape[:]
                response.outputs[0].shape.extend(value)
            else:
                setattr(response.outputs[0], name, value)
        return response

    return fault


def raw(content: bytes):
    def fault(context, response):
        response.raw_output_contents[0] = content
        return response

    return fault


def without_contents(context, response):
    del response.raw_output_contents[:]
    return response


def identified(id: str):
    def fault(context, response):
        response.id = id
        return response

    return fault


INVALID_RESPONSES = {
    "another output": (
        changed(name="embedding"),
        r"contains no output 'probabilities' \(it contains embedding\)",
    ),
    "integers": (changed(datatype="INT32"), r"returned INT32 values .* choose another output"),
    "text": (changed(datatype="BYTES"), "not valid Open Inference Protocol"),
    "a datatype that does not exist": (changed(datatype="\x1b[2J"), "not valid Open Inference"),
    "another shape": (changed(shape=[50, 5]), "not valid Open Inference Protocol .ValueError"),
    "too few rows": (changed(shape=[25, 8]), "25 rows for 50 images"),
    "cut off": (raw(bytes(795)), "795 bytes do not hold whole values"),
    "NaN": (raw(np.full(200, np.nan, "<f4").tobytes()), "NaN or infinity"),
    "no values": (without_contents, "not valid Open Inference Protocol .ValueError"),
}


@pytest.mark.parametrize(("fault", "message"), INVALID_RESPONSES.values(), ids=INVALID_RESPONSES)
def test_an_invalid_response_is_a_box_error_and_not_retried(
    grpc_server, images, patient, fault, message: str
) -> None:
    grpc_server.faults = [fault]
    with pytest.raises(BoxError, match=f"(?i){message}") as caught:
        load_box(grpc_server.url, workers=1)(images)
    assert not isinstance(caught.value, BoxUnavailable)
    assert str(caught.value).isprintable() and patient == []


def test_the_response_to_another_request_is_refused(grpc_server, images, patient) -> None:
    grpc_server.faults = [identified("another")]
    ledger = Ledger()
    Meter(load_box(grpc_server.url, workers=1), ledger).asking("probe")(images)
    assert ledger.by_purpose() == {"probe": 50, "retried": 50}


def test_a_server_without_ids_works_until_it_has_returned_one(grpc_server, images) -> None:
    box = OpenInferenceGrpcBox(grpc_server.url)
    grpc_server.faults = [identified("")]
    box(images)
    box(images)
    grpc_server.faults = [identified("")]
    with pytest.raises(BoxUnavailable, match="the id of another request"):
        box(images)


def test_a_response_larger_than_declared_is_refused(grpc_server, images) -> None:
    grpc_server.faults = [raw(bytes(2**21))]
    with pytest.raises(BoxError, match=r"sent more than 1.02 MB, the most that the declared"):
        load_box(grpc_server.url, workers=1)(images)


def test_a_compressed_response_is_not_expanded(grpc_server, images) -> None:
    def bomb(context, response):
        context.set_compression(2)  # gzip
        return raw(bytes(2**21))(context, response)

    grpc_server.faults = [bomb]
    with pytest.raises(BoxError, match=r"compressed although no compression was accepted"):
        load_box(grpc_server.url, workers=1)(images)


def test_a_request_that_the_server_finds_too_large_names_the_size_that_fits(grpc_server) -> None:
    images = np.random.default_rng(0).random((8, 3, 256, 256), dtype=np.float32)
    grpc_server.shape = [-1, 3, 256, 256]
    with pytest.raises(BoxError, match=r"fewer images per request \(batch=5\)") as caught:
        load_box(grpc_server.url, workers=1)(images)  # 6 MB; its limit is the usual 4 MB
    assert "RESOURCE_EXHAUSTED: SERVER: Received message larger" in str(caught.value)
    assert "). A request of 8 images has 6 MB: " in str(caught.value)
    assert "per request (--request-size 5)" in as_flags(str(caught.value))
    assert not isinstance(caught.value, BoxUnavailable)
    box = load_box(grpc_server.url, batch=5)
    np.testing.assert_allclose(box(images), grpc_server.expected(images), atol=1e-6)


TOO_LARGE = {
    "Go": "grpc: received message larger than max (9000000 vs. 4194304)",
    "Java": "gRPC message exceeds maximum size 4194304: 9000000",
    ".NET": "Received message exceeds the maximum configured message size.",
    "a hostile one": "message larger than max (9 vs. " + "9" * 6000,
    "Rust": "Error, message length too large: found 9000000 bytes, the limit is: 4194304 bytes",
}


@pytest.mark.parametrize("library", TOO_LARGE)
def test_other_libraries_say_it_in_other_words(grpc_server, failing, images, library) -> None:
    code = "OUT_OF_RANGE" if library == "Rust" else "RESOURCE_EXHAUSTED"
    grpc_server.faults = [failing(code, TOO_LARGE[library])]
    with pytest.raises(BoxError, match=r"send fewer images per request \(batch=\d+\)") as caught:
        load_box(grpc_server.url, workers=1)(images)
    assert not isinstance(caught.value, BoxUnavailable)


def test_one_image_that_is_too_large_needs_another_limit(grpc_server, failing, images) -> None:
    grpc_server.faults = [failing("RESOURCE_EXHAUSTED", "message larger than max (9999 vs. 100)")]
    with pytest.raises(BoxError, match=r"One image .* raise the limit of the server"):
        load_box(grpc_server.url)(images[:1])


def test_a_message_beyond_the_limit_of_the_format_is_not_sent(grpc_server, images, monkeypatch):
    monkeypatch.setattr("soda_tta.box.backends.grpc_client.LARGEST_MESSAGE", 20_000)
    with pytest.raises(BoxError, match=r"at most 2 GB.*\(batch=20\)"):
        load_box(grpc_server.url, workers=1)(images)
    assert grpc_server.asked == []


def test_a_response_that_breaks_off_is_retried() -> None:
    failure = SimpleNamespace(
        code=lambda: SimpleNamespace(name="INTERNAL"),
        details=lambda: "Received RST_STREAM with error code 2",
        trailing_metadata=lambda: None,
    )
    error = box_error("grpc://h:1/m", failure, timeout=1, most=1, size=1)
    assert isinstance(error, BoxUnavailable) and error.sent


def test_an_unknown_model_is_a_clear_error(grpc_server) -> None:
    with pytest.raises(
        BoxError, match=r"large answered NOT_FOUND: unknown: large; check the name of the model"
    ):
        load_box(f"{grpc_server.root}/large")


def test_the_http_port_is_recognised(server) -> None:
    with pytest.raises(BoxError, match=r"does not speak gRPC there.*check the port") as caught:
        load_box(server.url.replace("http", "grpc"))
    assert not isinstance(caught.value, BoxUnavailable)


def test_ctrl_c_ends_a_request_and_the_threads_of_others(grpc_server, images) -> None:
    def interrupted(context, response):  # when the request has arrived, however slow the machine
        os.kill(os.getpid(), signal.SIGINT)
        return hang(grpc_server)(context, response)

    for workers in (1, 4):
        grpc_server.faults = [interrupted, *[hang(grpc_server)] * (workers - 1)]
        box = load_box(grpc_server.url, workers=workers, timeout=1)
        with stopped_like_ctrl_c(), pytest.raises(KeyboardInterrupt):  # also in the background
            box(images)
        grpc_server.faults = []
        assert box(images).shape == (50, 4)  # `give_up` was taken back

"""Bad requests: an error in the protocol's shape, and the next request is served."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from soda_tta.protocols.tensors import DATATYPES, ProtocolError
from soda_tta.serve.limits import Limits
from soda_tta.serve.messages import find_tensor

from .conftest import PATH, PATIENCE, Darker, error_of, message, wait_for

LENGTH = "Inference-Header-Content-Length"
IMAGE = {"name": "images", "datatype": "FP32", "shape": [1, 3, 8, 8]}
RAW = {**IMAGE, "parameters": {"binary_data_size": 768}}


def binary(*inputs: Any, raw: int = 768, length: int | None = None) -> tuple[bytes, dict[str, str]]:
    head = json.dumps({"inputs": list(inputs)}).encode()
    return head + bytes(raw), {LENGTH: str(len(head) if length is None else length)}


def as_json(*inputs: Any) -> tuple[bytes, dict[str, str]]:
    return json.dumps({"inputs": list(inputs)}).encode(), {"Content-Type": "application/json"}


BODIES = {
    "no body": (b"", {}),
    "not JSON": (b"{", {}),
    "not UTF-8": (b'{"inputs": "\xff\xfe"}', {}),
    "no object": (b"[]", {}),
    "no inputs": (b"{}", {}),
    "inputs are a number": (b'{"inputs": 7}', {}),
    "an input is a number": (b'{"inputs": [7]}', {}),
    "deep JSON": (b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", {}),
    "deep data": as_json({**IMAGE, "data": json.loads("[" * 60 + "]" * 60)}),
    "a long number": (b'{"inputs": [{"name": ' + b"9" * 10_000 + b"}]}", {}),
    "truncated": binary(RAW, raw=700),
    "too much": binary(RAW, raw=800),
    "a longer header than body": binary(RAW, length=10**9),
    "a negative header": binary(RAW, length=-5),
    "a header that is no number": (binary(RAW)[0], {LENGTH: "many"}),
    "a header in the middle of the JSON": binary(RAW, length=20),
    "a shape that does not match": binary({**RAW, "shape": [1, 3, 8, 9]}),
    "a huge shape": binary({**RAW, "shape": [2**31, 2**31, 2**31, 2**31]}),
    "a huge shape in JSON": as_json({**IMAGE, "shape": [10**12, 3, 8, 8], "data": [0.5]}),
    "a negative shape": binary({**RAW, "shape": [-1, 3, 8, 8]}),
    "a shape of texts": binary({**RAW, "shape": ["1", 3, 8, 8]}),
    "a shape of fractions": binary({**RAW, "shape": [1.5, 2, 8, 8]}),
    "no shape": binary({"name": "images", "datatype": "FP32", **RAW, "shape": None}),
    "a huge size": binary({**RAW, "parameters": {"binary_data_size": 2**63}}),
    "a negative size": binary({**RAW, "parameters": {"binary_data_size": -768}}),
    "a size that is a text": binary({**RAW, "parameters": {"binary_data_size": "768"}}),
    "parameters are a list": binary({**RAW, "parameters": [768]}),
    "ragged data": as_json({**IMAGE, "data": [[1.0], [1.0, 2.0]]}),
    "data of objects": as_json({**IMAGE, "data": [{}] * 192}),
    "too few data": as_json({**IMAGE, "data": [0.0] * 191}),
    "an unknown datatype": binary({**RAW, "datatype": "FP7"}),
    "no datatype": binary({"name": "images", "shape": [1, 3, 8, 8], **RAW, "datatype": None}),
    "a datatype that is a list": binary({**RAW, "datatype": ["FP32"]}),
    "the same name twice": binary(RAW, RAW, raw=2 * 768),
    "another name": binary({**RAW, "name": "sound"}),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_bad_body_is_an_error_and_the_next_request_is_served(proxied, tensor, case) -> None:
    proxy = proxied(Darker())
    status, _, content = proxy.ask("POST", PATH, *BODIES[case])
    assert status == 400 and error_of(content), (status, content)
    assert proxy.infer(tensor).shape == (4, 4)
    assert proxy.count("errors_total[internal]") == 0 and proxy.proxy.places.bytes == 0


HEAD = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n".encode()
STREAMS = {
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a length that is no number": HEAD + b"Content-Length: five\r\n\r\nhello",
    "a negative length": HEAD + b"Content-Length: -5\r\n\r\nhello",
    "length and chunks": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a wrong chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "a long header": HEAD + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n",
    "many headers": HEAD + b"".join(b"X-%d: 1\r\n" % n for n in range(1000)) + b"\r\n",
    "a path with dots": b"GET /v2/../metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path with hidden dots": b"GET /v2/%2e%2e/metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path with a hidden slash": b"GET /v2/models%2ftiny HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path with a line": b"GET /v2/models/tiny%0d%0aX:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    "the address of another server": b"GET http://example.org/v2 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
}


@pytest.mark.parametrize("case", STREAMS)
def test_a_bad_stream_is_an_error_and_the_next_request_is_served(proxied, tensor, case) -> None:
    proxy = proxied()
    answer = exchange(proxy.port, STREAMS[case])
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 40", b"HTTP/1.0 40")), answer
    assert error_of(content)
    assert proxy.infer(tensor).shape == (4, 4)
    assert proxy.proxy.places.bytes == 0 and proxy.proxy.places.taken == 0


def test_a_slow_body_is_408_and_holds_no_place(proxied, tensor) -> None:
    proxy = proxied(limits=Limits(body_seconds=0.5, concurrency=1, queue=1))
    with socket.create_connection(("127.0.0.1", proxy.port)) as slow:
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert proxy.infer(tensor).shape == (4, 4)  # meanwhile
        answer = received(slow)
    assert b" 408 " in answer.partition(b"\r\n")[0]
    assert "too long to arrive" in error_of(answer.partition(b"\r\n\r\n")[2])
    assert proxy.proxy.places.bytes == 0


def test_a_body_that_stops_before_its_length(proxied, tensor) -> None:
    proxy = proxied()
    with socket.create_connection(("127.0.0.1", proxy.port)) as leaving:
        leaving.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    assert proxy.infer(tensor).shape == (4, 4)
    wait_for(lambda: proxy.proxy.places.bytes == 0)


@pytest.mark.parametrize("form", [b"Content-Length: 999999\r\n\r\n", b""])
def test_a_body_above_the_limit_is_413(proxied, tensor, form: bytes) -> None:
    proxy = proxied(limits=Limits(body_bytes=5000))
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + (b"400\r\n" + b"x" * 0x400 + b"\r\n") * 8
    answer = exchange(proxy.port, HEAD + (form or chunks))
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert "at most 5,000 bytes" in error_of(answer.partition(b"\r\n\r\n")[2])
    assert proxy.infer(tensor).shape == (4, 4)
    assert proxy.proxy.places.bytes == 0


def test_more_memory_than_allowed_is_503(proxied, tensor) -> None:
    proxy = proxied(limits=Limits(memory_bytes=1000))
    body, headers = message(tensor)
    assert proxy.ask("POST", PATH, body, headers)[0] == 503
    assert proxy.ask("GET", "/v2")[0] == 200
    assert proxy.proxy.places.bytes == 0


def test_more_connections_than_allowed_are_closed(proxied, tensor) -> None:
    proxy = proxied(limits=Limits(connections=2))
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port)))
        with pytest.raises(OSError):
            proxy.ask("GET", "/v2")
    assert proxy.count("errors_total[too many connections]") == 1


def test_large_batches_and_images_pass_unchanged(proxied, direct, tensor) -> None:
    for limits in (Limits(images=3), Limits(pixels=63)):
        proxy = proxied(Darker(), limits=limits)
        np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
        assert proxy.count("images_total[too large]") == 4


def test_expect_100_continue(proxied, tensor) -> None:
    proxy = proxied()
    body, headers = message(tensor)
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        lines += f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        client.sendall(HEAD + lines.encode())
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def exchange(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(data)
        return received(client)


def received(client: socket.socket) -> bytes:
    """One response."""
    client.settimeout(PATIENCE)
    answer = b""
    while piece := client.recv(65536):
        answer += piece
        head, _, content = answer.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        if length is not None and len(content) >= int(length[1]):
            break
    return answer


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
INPUT = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("images") | VALUES,
        "datatype": st.sampled_from(sorted(DATATYPES)) | VALUES,
        "shape": st.lists(st.integers(-2, 4), max_size=4) | VALUES,
        "data": st.lists(st.integers(0, 300), max_size=6) | VALUES,
        "parameters": st.fixed_dictionaries(
            {}, optional={"binary_data_size": st.integers(-9, 40) | VALUES}
        )
        | VALUES,
    },
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@example([RAW], bytes(768), 0)
@given(st.lists(INPUT, max_size=3) | VALUES, st.binary(max_size=40), st.integers(-3, 3))
def test_any_message_is_read_or_refused(inputs: Any, raw: bytes, shift: int) -> None:
    head = json.dumps({"inputs": inputs}).encode()
    headers = {LENGTH.lower(): str(len(head) + shift)} if raw else {}
    try:
        found = find_tensor(head + raw, headers, "images", "FP32")
    except ProtocolError:
        return
    if found is not None:
        other = found.array + np.float32(1)
        again = find_tensor(found.replaced(other), headers, "images", "FP32")
        if found.offset is not None:  # the length of JSON changes with its numbers
            np.testing.assert_array_equal(again.array, other)
            assert len(found.replaced(other)) == len(head + raw)


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200), st.text(max_size=5))
def test_any_bytes_are_read_or_refused(body: bytes, length: str) -> None:
    for headers in ({}, {LENGTH.lower(): length}):
        with contextlib.suppress(ProtocolError):
            find_tensor(body, headers, "images", "FP32")

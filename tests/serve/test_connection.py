"""Connections to the model: every way in which a response can be framed, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from soda_tta.serve.connection import Lost, Place, request_head
from soda_tta.serve.upstream import HttpUpstream, place_of

from .conftest import PATH, error_of, message

OK = b"HTTP/1.1 200 OK\r\n"


def raw(data: bytes, *, close: bool = False) -> Callable[[Any], None]:
    """A reply of these bytes."""

    def write(handler: Any) -> None:
        handler.wfile.write(data)
        handler.wfile.flush()
        handler.close_connection = close

    return write


@pytest.mark.parametrize(
    "reply",
    [
        raw(OK + b"Content-Length: 5\r\n\r\nhello"),
        raw(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        raw(OK + b"\r\nhello", close=True),
        raw(OK + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello", close=True),
        raw(b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello"),
    ],
)
def test_every_framing_is_read_and_the_next_request_too(behind, scripted, tensor, reply) -> None:
    proxy = behind()
    body, headers = message(tensor)
    for _ in range(2):
        scripted.replies.append(reply)
        assert proxy.ask("POST", PATH, body, headers)[::2] == (200, b"hello")
    assert proxy.ask("POST", PATH, body, headers)[::2] == (200, b"{}")
    assert [request[2] for request in scripted.requests] == [body] * 3


@pytest.mark.parametrize(
    "reply",
    [
        raw(b"hello\r\n\r\n", close=True),
        raw(OK + b"Content-Length: 50\r\n\r\nhello", close=True),
        raw(OK + b"Content-Length: five\r\n\r\nhello", close=True),
        raw(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", close=True),
        raw(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n" * 1),
        raw(OK + b"Transfer-Encoding: chunked\r\n\r\n" + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 12),
        raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", close=True),
        raw(b"HTTP/1.1 100 Continue\r\n\r\n", close=True),
    ],
)
def test_a_response_that_is_not_valid_is_502_and_the_next_request_is_served(
    behind, scripted, tensor, reply
) -> None:
    proxy = behind(timeout=0.5)
    scripted.replies.append(reply)
    status, _, content = proxy.ask("POST", PATH, *message(tensor))
    assert status in (502, 504) and error_of(content) == "the model did not respond."
    assert proxy.ask("POST", PATH, *message(tensor))[::2] == (200, b"{}")
    assert len(scripted.requests) == 2  # what has begun to be answered is not sent again


def test_a_second_response_is_not_given_to_the_next_request(behind, scripted, tensor) -> None:
    proxy = behind()
    stray = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
    scripted.replies.append(raw(OK + b"Content-Length: 5\r\n\r\nfirst" + stray))
    assert proxy.ask("POST", PATH, *message(tensor))[::2] == (200, b"first")
    assert proxy.ask("POST", PATH, *message(tensor))[::2] == (200, b"{}")


def test_head_has_no_body(proxied) -> None:
    proxy = proxied()
    for _ in range(2):
        status, _, content = proxy.ask("HEAD", "/v2/models/tiny")
        assert (status, content) == (200, b"")
    assert proxy.ask("GET", "/v2/models/tiny")[2].startswith(b"{")


def test_no_header_becomes_two() -> None:
    place = Place("host", 80, "host")
    for name, value in (("a", "b\r\nc: d"), ("a", "b\nc: d"), ("a\r", "b"), ("a", "\0")):
        with pytest.raises(Lost, match="line break"):
            request_head(place, "GET", "/v2", {name: value}, b"")
    with pytest.raises(Lost):
        request_head(place, "GET", "/v2 HTTP/1.1\r\nHost: other\r\n\r\n", {}, b"")


def test_places() -> None:
    place, prefix = place_of("http://[::1]:81/a/b", None)
    assert (place.host, place.port, place.name, prefix) == ("::1", 81, "[::1]:81", "/a/b")
    place, _ = place_of("https://host", None)
    assert place.port == 443 and place.secure is not None
    assert HttpUpstream("http://host/v2/models/cats").place.port == 80

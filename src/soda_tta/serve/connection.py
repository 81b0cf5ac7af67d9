"""One connection to the model over HTTP/1.1: one request at a time, as little work as possible.

A general HTTP client takes longer for a request than everything else that the proxy does with it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httptools

EMPTY = ("GET", "HEAD", "OPTIONS")  # requests that have no Content-Length if they have no body
FRAMES = ("content-length", "transfer-encoding")  # headers that tell where a body ends


@dataclass(frozen=True)
class Reply:
    """A complete response; the names of its headers are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Lost(OSError):
    """The connection ended, or what came is not a response."""


class TooSlow(Lost):
    """There was no complete response in time."""


@dataclass(frozen=True)
class Place:
    """Where a server listens.

    Attributes
    ----------
    host, port : str, int
    name : str
        What stands in the header Host.
    secure : ssl.SSLContext, optional
        Speak TLS.
    """

    host: str
    port: int
    name: str
    secure: ssl.SSLContext | None = None


class Connection(asyncio.Protocol):
    """A connection to one place.

    Parameters
    ----------
    place : Place
    most : int
        Bytes of the largest response.
    closed : callable
        Called when the connection has ended.
    """

    def __init__(self, place: Place, most: int, closed: Callable[[Connection], None]) -> None:
        self.place = place
        self.most = most
        self.closed = closed
        self.transport: asyncio.Transport | None = None
        self.parser = httptools.HttpResponseParser(self)
        self.answer: asyncio.Future[Reply] | None = None
        self.reusable = True
        self.silent = True  # no byte of a response to the current request
        self.only_head = False

    async def ask(
        self, verb: str, path: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> Reply:
        """The response to one request, within so many seconds; raises `Lost`."""
        assert self.transport is not None
        head = request_head(self.place, verb, path, headers, body)
        loop = asyncio.get_running_loop()
        self.answer = loop.create_future()
        self.silent = True
        self.only_head = verb == "HEAD"
        timer = loop.call_later(seconds, self._fail, TooSlow(f"no response within {seconds:g} s"))
        try:
            self.transport.writelines([head, body] if body else [head])
            return await self.answer
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()
            self.answer = None

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self.reusable and self.transport is not None and not self.transport.is_closing()

    def close(self) -> None:
        """End the connection at once."""
        self.reusable = False
        if self.transport is not None:
            self.transport.abort()

    # -- called by the event loop ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.silent = False
        if self.answer is None or self.answer.done():  # nothing was asked
            self.close()
            return
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(Lost(f"it sent what is not HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self.reusable = False
        if self.answer is not None and not self.answer.done():
            if error is None and not self.silent and self.ends_with_connection:
                self._finish()
            else:
                self._fail(Lost(str(error) if error else "it closed the connection"))
        self.closed(self)

    # -- called by the parser --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.answer is None or self.answer.done():  # a second response
            self.close()
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.size = 0
        self.ends_with_connection = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("utf-8", "replace")

    def on_headers_complete(self) -> None:
        if self.only_head:
            self.reusable = False  # the parser would wait for a body
            self._finish()
            return
        framed = any(name in self.headers for name in FRAMES)
        self.ends_with_connection = not framed and self.parser.get_status_code() >= 200

    def on_body(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self.most:
            self.pieces.clear()
            self._fail(Lost(f"it sent more than {self.most:,} bytes"))
        else:
            self.pieces.append(piece)

    def on_message_complete(self) -> None:
        if self.parser.get_status_code() < 200:  # such as 100: the response follows
            return
        self.reusable = self.reusable and self.parser.should_keep_alive()
        self._finish()

    def _finish(self) -> None:
        if self.answer is not None and not self.answer.done():
            body = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
            self.answer.set_result(Reply(self.parser.get_status_code(), body, self.headers))
        self.pieces = []  # an idle connection holds no response

    def _fail(self, error: Lost) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
        self.close()


def request_head(
    place: Place, verb: str, path: str, headers: Mapping[str, str], body: bytes
) -> bytes:
    """The first lines of a request; raises `Lost` for what would be more lines than it should.

    >>> request_head(Place("host", 80, "host:80"), "GET", "/v2", {"accept": "*/*"}, b"")
    b'GET /v2 HTTP/1.1\\r\\nHost: host:80\\r\\naccept: */*\\r\\n\\r\\n'
    """
    lines = [f"{verb} {path} HTTP/1.1", f"Host: {place.name}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or verb not in EMPTY:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or "\0" in head:
        raise Lost("the request has a line break in a header")
    return (head + "\r\n\r\n").encode("utf-8", "surrogateescape")


async def connected(place: Place, most: int, closed: Callable[[Connection], None]) -> Connection:
    """A new connection."""
    loop: Any = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        lambda: Connection(place, most, closed), place.host, place.port, ssl=place.secure
    )
    return cast(Connection, connection)

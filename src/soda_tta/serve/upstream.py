"""The model behind the proxy, over HTTP: one request in, its own response out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from soda_tta.box.addresses import check_address
from soda_tta.box.backends.credentials import tls_context
from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted
from soda_tta.serve.connection import Connection, Lost, Place, Reply, TooSlow, connected

IDLE_SECONDS = 4.0  # below the 5 s after which many servers close an idle connection


class Unreachable(Exception):
    """The model sent no response that could be passed on; `status` is for the client."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Upstream(Protocol):
    """Whatever answers the requests of the protocol."""

    name: str
    version: str  # empty: any

    async def send(self, verb: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The response to one request; raises `Unreachable` if there is none."""

    def limit(self, most: int) -> None:
        """Accept responses of at most so many bytes from now on."""

    async def close(self) -> None:
        """Close the connections."""


class HttpUpstream:
    """A server of the Open Inference Protocol. Its address is fixed when the proxy starts.

    Parameters
    ----------
    url : str
        `http(s)://host:port/v2/models/NAME[/versions/V]`.
    timeout : float
        Seconds for a whole request.
    most : int
        Bytes of the largest response.
    certificate_authority : str or Path, optional
        PEM file of a certificate authority to trust. Default: those of the system.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        most: int = 2**28,
        certificate_authority: str | Path | None = None,
    ) -> None:
        self.root, self.name, self.version = taken_apart(url)
        self.timeout = timeout
        self.most = most
        self.place, self.prefix = place_of(self.root, certificate_authority)
        self.idle: dict[Connection, asyncio.TimerHandle] = {}  # the last one was used last

    async def send(self, verb: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        request = (verb, self.prefix + path, headers, body, self.timeout)
        connection = self._idle_connection()
        if connection is not None:
            try:
                return await self._asked(connection, request)
            except TooSlow as error:
                raise Unreachable(504, str(error)) from error
            except Lost as error:
                # A server may close an idle connection at the moment it is used: no request is
                # lost then, and it has not begun to respond.
                if not connection.silent:
                    raise Unreachable(502, unreachable(error)) from error
        try:
            return await self._asked(await self._connected(), request)
        except TooSlow as error:
            raise Unreachable(504, str(error)) from error
        except OSError as error:
            raise Unreachable(502, unreachable(error)) from error

    async def _asked(self, connection: Connection, request: tuple[Any, ...]) -> Reply:
        connection.most = self.most  # it may have changed since the last request
        reply = await connection.ask(*request)
        if connection.is_open:
            loop = asyncio.get_running_loop()
            self.idle[connection] = loop.call_later(IDLE_SECONDS, connection.close)
        return reply

    def _idle_connection(self) -> Connection | None:
        """An open connection that was used before."""
        while self.idle:
            connection, timer = self.idle.popitem()
            timer.cancel()
            if connection.is_open:
                return connection
        return None

    async def _connected(self) -> Connection:
        """A new connection; raises an `OSError`."""
        try:
            return await asyncio.wait_for(
                connected(self.place, self.most, self._forget), self.timeout
            )
        except asyncio.TimeoutError as error:
            raise TooSlow(f"cannot be reached within {self.timeout:g} s") from error

    def _forget(self, connection: Connection) -> None:
        """A connection has ended."""
        timer = self.idle.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def limit(self, most: int) -> None:
        self.most = most

    async def close(self) -> None:
        for connection in list(self.idle):
            connection.close()


def place_of(root: str, certificate_authority: str | Path | None) -> tuple[Place, str]:
    """Where the server listens, and what stands before `/v2` in its paths.

    >>> place, prefix = place_of("http://host:8000/models", None)
    >>> place.host, place.port, prefix
    ('host', 8000, '/models')
    """
    parts = urlsplit(root)
    secure = parts.scheme == "https"
    try:
        port = parts.port or (443 if secure else 80)
    except ValueError as error:
        raise BoxError(f"{root} is not a valid address: {error}.") from error
    if not parts.hostname:
        raise BoxError(f"{root} names no host; pass http(s)://host:port/v2/models/NAME.")
    context = tls_context(certificate_authority) if secure else None
    return Place(parts.hostname, port, parts.netloc, context), parts.path


def taken_apart(url: str) -> tuple[str, str, str]:
    """The address before `/v2`, the name of the model, and its version or an empty text.

    >>> taken_apart("http://host:8000/v2/models/cats/versions/2")
    ('http://host:8000', 'cats', '2')
    """
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")) or url.count("/v2/models/") != 1:
        raise BoxError(f"{url} names no model; pass http(s)://host:port/v2/models/NAME.")
    check_address(url)
    root, _, rest = url.partition("/v2/models/")
    name, _, version = rest.partition("/versions/")
    if not name or "/" in name or "/" in version:
        raise BoxError(f"{url} names no model; pass http(s)://host:port/v2/models/NAME.")
    return root, unquote(name), unquote(version)


def unreachable(error: Exception) -> str:
    """What happened, for a person."""
    return f"cannot be reached ({quoted(error) or type(error).__name__})"

"""HTTP with limits: one deadline for a whole request, bounded responses, connections to trust."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

from soda_tta._version import __version__
from soda_tta.box.backends.credentials import tls_context
from soda_tta.box.backends.deadlines import Deadlines
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.foreign_json import parse_json

if TYPE_CHECKING:
    import httpcore

ERROR_BYTES = 2**16  # read of a response that is not a success: enough for its reason
MEGABYTE = 2**20


@dataclass(frozen=True)
class HttpResponse:
    """A complete response; the names of its headers are in lower case."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @cached_property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        """The body as JSON; ValueError if it is something else."""
        return parse_json(self.content)

    @property
    def retry_after(self) -> float | None:
        """Seconds the server asks us to wait; the date form of the header is rare and ignored."""
        try:
            return max(0.0, float(self.headers.get("retry-after", "")))
        except ValueError:
            return None


class HttpClient:
    """Sends requests to one host. A connection is used again only if all went well on it.

    Parameters
    ----------
    timeout : float
        Seconds for a whole request: connecting, sending, and receiving the last byte.
    headers : dict
        Sent with every request.
    certificate_authority : str or Path, optional
        PEM file of a certificate authority to trust. Default: those of the system.
    connect_to : str, optional
        The IP address to connect to, whatever the name of the host resolves to.
    """

    def __init__(
        self,
        timeout: float,
        headers: Mapping[str, str],
        certificate_authority: str | Path | None = None,
        connect_to: str | None = None,
    ) -> None:
        try:
            import httpx  # noqa: F401 - it brings httpcore, and reads addresses
        except ImportError as error:
            raise BoxError(
                "models over HTTP need httpx: pip install 'soda-tta[remote]'."
            ) from error
        self.context = tls_context(certificate_authority)
        self.timeout = timeout
        self.connect_to = connect_to
        # No compression: a small response must not become a large one.
        self.headers = {
            "User-Agent": f"soda-tta/{__version__}",
            "Accept-Encoding": "identity",
            **headers,
        }
        self.idle: list[Connection] = []
        self.lock = threading.Lock()

    @contextmanager
    def exchange(
        self,
        verb: str,
        url: str,
        *,
        most: int,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[HttpResponse]:
        """Send one request, for the block that reads its response.

        If the block raises, the connection is dropped: what comes next on it may belong to another
        request. Raises `BoxUnavailable` if a retry may help.

        Parameters
        ----------
        most : the largest response to accept, in bytes.
        """
        address = parsed(url)
        with self.lock:
            connection = self.idle.pop() if self.idle else None
        if connection is None:
            connection = Connection(url, self.context, self.connect_to)
        try:
            sent = {**self.headers, **(headers or {})}
            with as_box_errors(url, self.timeout):
                response, complete = connection.request(
                    verb, address, sent, content, self.timeout, most
                )
            yield response
        except BaseException:
            connection.close()
            raise
        if not complete:
            connection.close()
            return
        with self.lock:
            self.idle.append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        with self.lock:
            for connection in self.idle:
                connection.close()
            self.idle.clear()


class Connection:
    """One connection to a server, or to the proxy that the environment names for it."""

    def __init__(self, url: str, context: ssl.SSLContext, connect_to: str | None = None) -> None:
        import httpcore

        self.clock = Deadlines(connect_to)
        options: dict[str, Any] = dict(
            ssl_context=context, max_connections=1, network_backend=self.clock
        )
        scheme, _, rest = url.partition("://")
        proxy = getproxies().get(scheme)
        if proxy and not proxy_bypass(rest.partition("/")[0]):
            if connect_to is not None:
                raise BoxError(
                    f"{url} is reached through a proxy, which chooses the server itself; "
                    "list the addresses of the servers, or leave out replicas='dns'."
                )
            proxy = proxy if "://" in proxy else f"http://{proxy}"
            self.pool: httpcore.ConnectionPool = httpcore.HTTPProxy(proxy, **options)
        else:
            self.pool = httpcore.ConnectionPool(**options)

    def request(
        self,
        verb: str,
        address: httpcore.URL,
        headers: Mapping[str, str],
        content: bytes | None,
        timeout: float,
        most: int,
    ) -> tuple[HttpResponse, bool]:
        """The response, and whether it was read to its end."""
        self.clock.end = time.monotonic() + timeout
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), timeout)
        with self.pool.stream(
            verb,
            address,
            headers=list(headers.items()),
            content=content,
            extensions={"timeout": timeouts},
        ) as answer:
            received = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in answer.headers
            }
            success = answer.status == 200
            encoding = received.get("content-encoding", "identity")
            if success and encoding != "identity":
                raise BoxError(
                    f"the server answered in the encoding {encoding[:40]!r} although none was "
                    "accepted; turn compression off there."
                )
            body = bytearray()
            for chunk in answer.iter_stream():
                body += chunk
                if len(body) <= (most if success else ERROR_BYTES):
                    continue
                if success:
                    raise BoxError(
                        f"the server sent more than {most / MEGABYTE:.3g} MB, the most that the "
                        "declared shapes explain; does it serve this model?"
                    )
                return HttpResponse(answer.status, received, bytes(body[:ERROR_BYTES])), False
        return HttpResponse(answer.status, received, bytes(body)), True

    def close(self) -> None:
        """Close it, also in the middle of a response."""
        self.pool.close()


def parsed(url: str) -> httpcore.URL:
    """The address as `httpcore` takes it."""
    import httpcore
    import httpx

    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise BoxError(f"{url} is not a valid address: {error}") from error
    return httpcore.URL(
        scheme=address.raw_scheme,
        host=address.raw_host,
        port=address.port,
        target=address.raw_path,
    )


@contextmanager
def as_box_errors(url: str, timeout: float) -> Iterator[None]:
    """Turn what goes wrong on the network into errors of a box."""
    import httpcore

    try:
        yield
    except (httpcore.ConnectError, httpcore.ProxyError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise BoxError(
                f"{url} is not trusted: {error}; name the authority that signed "
                "its certificate (certificate_authority='FILE')."
            ) from error
        raise BoxUnavailable(unreachable(url, error), sent=False) from error
    except httpcore.TimeoutException as error:
        raise BoxUnavailable(
            f"{url} did not respond within {timeout:g} s "
            f"(allow more time, for example timeout={4 * timeout:g}).",
            sent=not isinstance(error, httpcore.ConnectTimeout),
        ) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise BoxUnavailable(unreachable(url, error)) from error
    except (httpcore.UnsupportedProtocol, UnicodeError) as error:
        raise BoxError(f"{url} is not a valid address: {error}") from error
    except BoxError as error:
        raise BoxError(f"{url}: {error}") from error


def unreachable(url: str, error: Exception) -> str:
    """What happened, for a person."""
    return f"{url} cannot be reached: {error or type(error).__name__}"

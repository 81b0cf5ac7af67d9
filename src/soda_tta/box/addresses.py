"""Addresses of models: what they look like, what cannot be one, and what must not stand in one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urlsplit

from soda_tta.errors import BoxError

FORM = "http://host:port/v2/models/NAME"
GRPC_FORM = "grpc(s)://host:port/NAME"
GRPC_PORT = 8001  # Triton's; MLServer and KServe use 8081
TLS_PORT = 443
SCHEME = re.compile(r"(?P<scheme>[a-zA-Z][\w+.-]*)://(?P<host>[^/?#]*)")
# `localhost:8000/...` and `10.0.0.7:8000`; no function of Python has a name that begins so.
WITHOUT_SCHEME = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):\d+(?P<path>/.*)?$")
# What follows the host in the address of a model over gRPC. The HTTP form of a name is the same.
GRPC_PATH = re.compile(r"/(v2/models/)?(?P<name>[^/]+)(/versions/(?P<version>[^/]+))?/*")


def check_address(url: str) -> None:
    """Refuse an address with a password or a key in it, because addresses are written to files."""
    if "@" in url.split("/")[2]:
        raise BoxError(
            "the address contains a user or password, which would be written to files; "
            "pass the key by api_key_env='VARIABLE'."
        )
    if "?" in url or "#" in url:
        raise BoxError(
            "the address contains a query (?...), which would be written to files; leave it out, "
            "and pass a key by api_key_env='VARIABLE' and its header by api_key_header='NAME'."
        )


@dataclass(frozen=True)
class GrpcAddress:
    """A model over gRPC, read from `grpc(s)://host:port/NAME[/versions/V]`.

    >>> address = GrpcAddress.read("grpc://host:8001/cats/versions/2")
    >>> address.place, address.name, address.version, address.secure
    ('host:8001', 'cats', '2', False)
    >>> print(address)
    grpc://host:8001/cats/versions/2
    """

    place: str  # host and port
    name: str
    version: str = ""  # empty: the server chooses
    secure: bool = False

    @classmethod
    def read(cls, url: str) -> GrpcAddress:
        """Take an address apart; a BoxError says what is missing."""
        check_address(url)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise BoxError(f"{url} is not a valid address: {error}; pass {GRPC_FORM}.") from error
        if not parts.hostname:
            raise BoxError(f"{url} names no host; pass {GRPC_FORM}.")
        path = GRPC_PATH.fullmatch(parts.path)
        if path is None:
            raise BoxError(
                f"{url} names no model; pass {parts.scheme}://{_place(parts, port)}/NAME."
            )
        if port is None and parts.scheme == "grpc":
            raise BoxError(
                f"{url} names no port; pass grpc://{_place(parts, port)}{parts.path} "
                "(Triton's port is 8001, that of MLServer and KServe 8081)."
            )
        return cls(
            _place(parts, port),
            unquote(path["name"]),
            unquote(path["version"] or ""),
            parts.scheme == "grpcs",
        )

    def __str__(self) -> str:
        version = f"/versions/{quote(self.version)}" if self.version else ""
        scheme = "grpcs" if self.secure else "grpc"
        return f"{scheme}://{self.place}/{quote(self.name)}{version}"


def _place(parts: SplitResult, port: int | None) -> str:
    """Host and port; without a port, the usual one."""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    usual = TLS_PORT if parts.scheme == "grpcs" else GRPC_PORT
    return f"{host}:{usual if port is None else port}"


def replica_addresses(model: str) -> list[str]:
    """The addresses of `URL1,URL2,...`, which are servers of one model.

    >>> replica_addresses("grpc://a:8001/cats,grpc://b:8001/cats")
    ['grpc://a:8001/cats', 'grpc://b:8001/cats']
    """
    urls = [url.strip() for url in model.split(",")]
    scheme = urls[0].partition("://")[0].lower()
    for number, url in enumerate(urls):
        if url.partition("://")[0].lower() != scheme:
            raise BoxError(
                f"{url!r} does not begin with {scheme}://; separate the addresses of the servers "
                "by commas, all of them over the same protocol (a comma in a name is %2C)."
            )
        if url in urls[:number]:
            raise BoxError(f"{url} is listed twice; list every server once.")
    return urls


def refuse_other_addresses(model: str) -> None:
    """Raise a BoxError with the remedy if this is an address, but not one over HTTP or gRPC.

    >>> refuse_other_addresses("cats.py:predict")
    >>> refuse_other_addresses("localhost:8000")
    Traceback (most recent call last):
    ...
    soda_tta.errors.BoxError: localhost:8000 has no http://; pass http://localhost:8000/v2/models/NAME.
    """
    address = SCHEME.match(model)
    if address is not None:
        raise BoxError(
            f"{model} is not an address over HTTP or gRPC; pass {FORM} (or https) or {GRPC_FORM}."
        )
    address = WITHOUT_SCHEME.match(model)
    if address is not None:
        path = address["path"] or ""
        named = model if "/v2/models/" in path else f"{model.removesuffix(path)}/v2/models/NAME"
        raise BoxError(f"{model} has no http://; pass http://{named}.")

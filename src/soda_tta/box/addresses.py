"""Addresses of models: what cannot be one, and what must not stand in one."""

from __future__ import annotations

import re

from soda_tta.errors import BoxError

FORM = "http://host:port/v2/models/NAME"
SCHEME = re.compile(r"(?P<scheme>[a-zA-Z][\w+.-]*)://(?P<host>[^/?#]*)")
# `localhost:8000/...` and `10.0.0.7:8000`; no function of Python has a name that begins so.
WITHOUT_SCHEME = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):\d+(?P<path>/.*)?$")


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
            "and pass a key by api_key_env='VARIABLE' and its HTTP header by api_key_header='NAME'."
        )


def refuse_other_addresses(model: str) -> None:
    """Raise a BoxError with the remedy if this is an address, but not one over HTTP.

    >>> refuse_other_addresses("cats.py:predict")
    >>> refuse_other_addresses("localhost:8000")
    Traceback (most recent call last):
    ...
    soda_tta.errors.BoxError: localhost:8000 has no http://; pass http://localhost:8000/v2/models/NAME.
    """
    address = SCHEME.match(model)
    if address is not None and address["scheme"].lower() in ("grpc", "grpcs"):
        raise BoxError(
            f"{model}: gRPC is not supported yet; pass the HTTP address of the same server, "
            f"such as http://{host_of(address['host'])}:8000/v2/models/NAME."
        )
    if address is not None:
        raise BoxError(f"{model} is not an address over HTTP; pass {FORM} (or https).")
    address = WITHOUT_SCHEME.match(model)
    if address is not None:
        path = address["path"] or ""
        named = model if "/v2/models/" in path else f"{model.removesuffix(path)}/v2/models/NAME"
        raise BoxError(f"{model} has no http://; pass http://{named}.")


def host_of(place: str) -> str:
    """The host of `user@host:port`, without the rest."""
    return place.rpartition("@")[2].rpartition(":")[0] or place.rpartition("@")[2]

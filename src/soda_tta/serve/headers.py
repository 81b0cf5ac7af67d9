"""Which headers pass through the proxy: those on a list, and no others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

# Of requests. Names are in lower case, as gRPC sends them.
REQUEST = (
    "accept",
    "accept-encoding",
    "content-encoding",
    "content-type",
    "inference-header-content-length",
    "traceparent",
    "tracestate",
    "triton-grpc-error",
    "x-request-id",
)
RESPONSE = (
    "content-encoding",
    "content-type",
    "endpoint-load-metrics",
    "inference-header-content-length",
    "retry-after",
    "www-authenticate",
    "x-request-id",
)
AUTHORIZATION = "authorization"
NEVER = (  # they belong to one connection, or choose where a request goes
    *("connection", "content-length", "expect", "forwarded", "host", "keep-alive"),
    *("proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"),
)


class Passing:
    """The lists of one proxy.

    Parameters
    ----------
    more : collection of str
        Further headers that pass, in both directions.
    key : mapping
        The header with the key of the proxy at the model. The client's Authorization then stays
        here, as it does if clients show a key to the proxy.
    keeps_authorization : bool
        Clients show a key to the proxy.

    Examples
    --------
    >>> Passing().request({"cookie": "a", "traceparent": "00-1-2-01"})
    {'traceparent': '00-1-2-01'}
    """

    def __init__(
        self,
        more: Collection[str] = (),
        key: Mapping[str, str] | None = None,
        *,
        keeps_authorization: bool = False,
    ) -> None:
        named = {name.lower() for name in more} - set(NEVER)
        self.key = {name.lower(): value for name, value in (key or {}).items()}
        passes = () if keeps_authorization or self.key else (AUTHORIZATION,)
        self.of_requests = frozenset({*REQUEST, *named, *passes})
        self.of_responses = frozenset({*RESPONSE, *named})

    def request(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a request, by lower-case name, that go to the model."""
        kept = {name: value for name, value in headers.items() if name in self.of_requests}
        return {**kept, **self.key}

    def response(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of the model's response that go to the client."""
        return {name: value for name, value in headers.items() if name in self.of_responses}

"""What a failed call over gRPC means: another attempt, or an error that names the remedy."""

from __future__ import annotations

import re
from typing import Any

from soda_tta.box.backends.served import CHECK_KEY, CHECK_NAME, QUESTION
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.foreign_text import quoted

MEGABYTE = 2**20

# Worth a retry. INTERNAL and UNKNOWN are not: servers use them for requests that are wrong
# themselves.
RETRIED = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", "CANCELLED")
# The server declined the request before its model saw it, as 429 does over HTTP.
DECLINED = ("RESOURCE_EXHAUSTED",)
# How our own library begins if there was no connection, so that nothing was sent.
NOT_CONNECTED = (
    "failed to connect to all addresses",
    "connections to all backends failing",
    "errors resolving",
    "DNS resolution failed",
)
CUT = "RST_STREAM"  # INTERNAL, although it is the network: the response broke off
CHECK_PORT = "check the port (HTTP and gRPC have one each), and grpc:// or grpcs://"
REMEDIES = {
    "UNAUTHENTICATED": CHECK_KEY,
    "PERMISSION_DENIED": CHECK_KEY,
    "NOT_FOUND": CHECK_NAME,
    "UNIMPLEMENTED": f"{QUESTION} Or {CHECK_PORT}.",
    "INVALID_ARGUMENT": "check the size of the images, and try fewer per request (batch=1).",
}
# The words of the libraries for C++ and Python, Go, Java, .NET and Rust, in this order.
TOO_LARGE = re.compile(r"message (\w+ )?(larger than max|exceeds|length too large)", re.IGNORECASE)
OWN_LIMIT = "CLIENT: Received message larger than max"
NUMBER = re.compile(r"\d{3,12}")
NOT_TRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED|Hostname Verification|Peer name")
HUNG_UP = "Socket closed"
NOT_GRPC = re.compile(r"Failed parsing HTTP/2|http1|WRONG_VERSION_NUMBER")
# No compression is accepted, and some servers compress nevertheless.
NOT_READ = ("Exception deserializing response", "Compression algorithm")


class RequestTooLarge(BoxError):
    """The server does not accept a message of this size.

    Parameters
    ----------
    message : str
    limit : int or None
        The bytes it accepts, if it says so.
    """

    def __init__(self, message: str, limit: int | None) -> None:
        super().__init__(message)
        self.limit = limit


def box_error(url: str, failure: Any, *, timeout: float, most: int, size: int) -> BoxError:
    """The error of a box for a `grpc.RpcError`.

    Parameters
    ----------
    url : the address of the model, for the message.
    failure : what the library raised.
    timeout : seconds that the call was given.
    most : bytes of the largest response that is accepted.
    size : bytes of the request.
    """
    code = failure.code().name
    details = failure.details() or ""
    if code == "DEADLINE_EXCEEDED":
        return BoxUnavailable(
            f"{url} did not respond within {timeout:g} s "
            f"(allow more time, for example timeout={4 * timeout:g})."
        )
    if OWN_LIMIT in details:
        return BoxError(
            f"{url}: the server sent more than {most / MEGABYTE:.3g} MB, the most that the "
            "declared shapes explain; does it serve this model?"
        )
    if TOO_LARGE.search(details):
        said = quoted(details).rstrip(".")
        return RequestTooLarge(f"{url} answered {code}: {said}.", limit_in(details, size))
    if details.startswith(NOT_CONNECTED):
        return unconnected(url, details)
    if details.startswith(NOT_READ):
        return BoxError(
            f"{url}: the response is not valid Open Inference Protocol, or it is compressed "
            "although no compression was accepted; turn that off there."
        )
    answer = f"{url} answered {code}: {quoted(details)}"
    if code in RETRIED or CUT in details:
        return BoxUnavailable(answer, requested_wait(failure), sent=code not in DECLINED)
    return BoxError(f"{answer.rstrip('.')}; {REMEDIES[code]}" if code in REMEDIES else answer)


def unconnected(url: str, details: str) -> BoxError:
    """Nothing was sent: is there no server, not this protocol, or a server not to be trusted?"""
    reason = quoted(details.rpartition("last error: ")[2])
    if NOT_TRUSTED.search(details):
        return BoxError(
            f"{url} is not trusted: {reason}; name the authority that signed "
            "its certificate (certificate_authority='FILE'), and the host as it is named there."
        )
    if NOT_GRPC.search(details):
        return BoxError(
            f"{url} does not speak gRPC there, or not with this kind of encryption ({reason}); "
            f"{CHECK_PORT}."
        )
    # A server that restarts hangs up, too: that is worth a retry.
    hint = f"; {CHECK_PORT}" if HUNG_UP in details else ""
    return BoxUnavailable(f"{url} cannot be reached: {reason}{hint}", sent=False)


def limit_in(details: str, size: int) -> int | None:
    """The bytes that a server accepts: the one number below the size of the request."""
    numbers = [int(number) for number in NUMBER.findall(details)]
    return next((number for number in numbers if number < size), None)


def requested_wait(failure: Any) -> float | None:
    """Seconds that the server, or a gateway before it, asks us to wait."""
    metadata = {str(name): value for name, value in failure.trailing_metadata() or ()}
    try:
        if "grpc-retry-pushback-ms" in metadata:
            return max(0.0, float(metadata["grpc-retry-pushback-ms"]) / 1000)
        return max(0.0, float(metadata.get("retry-after", "")))
    except ValueError:
        return None

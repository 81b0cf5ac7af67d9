"""What the proxy answers itself over HTTP: a status and the reason, as the protocol has them."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

from aiohttp import web

ODD_PATH = re.compile(r"(^|/)\.\.?(/|$)|//|[\\\x00-\x20\x7f]")
RETRY_AFTER = {"retry-after": "1"}
BUSY = "too many requests wait already; send this one again later."


class Refused(Exception):
    """The proxy answers itself: a status and the reason, in the shape of the protocol."""

    def __init__(self, status: int, reason: str, *, kind: str, close: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.kind = kind  # of error, for the metrics
        self.close = close


def plain_path(request: web.BaseRequest) -> str:
    """The path without its query and escapes; refuses those that servers read differently."""
    raw = request.raw_path
    path = unquote(raw.partition("?")[0])
    if not raw.startswith("/") or ODD_PATH.search(path) or "%2f" in raw.lower() or "#" in raw:
        raise Refused(400, "the path is not valid.", kind="bad request")
    return path.rstrip("/") or "/"


def too_large(most: int) -> Refused:
    """The refusal of a body that is too long."""
    return Refused(413, f"a request has at most {most:,} bytes.", kind="too large", close=True)


def error_response(status: int, reason: str) -> web.Response:
    """An error in the shape of the protocol."""
    headers = {"content-type": "application/json"}
    if status == 503:
        headers |= RETRY_AFTER
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    body = json.dumps({"error": reason}).encode()
    return web.Response(body=body, status=status, headers=headers)

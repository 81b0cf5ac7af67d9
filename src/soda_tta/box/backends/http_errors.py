"""What the status of an HTTP response means."""

from __future__ import annotations

from typing import Any

from soda_tta.foreign_json import parse_json
from soda_tta.foreign_text import quoted

# Worth a retry. A 500 is not: servers use it for requests that are wrong themselves.
UNAVAILABLE = (408, 425, 429, 502, 503, 504)


def describe(response: Any) -> str:
    """The status and the first words of the body.

    Servers give the reason under `error` or `detail`, or in plain text.
    """
    try:
        body = parse_json(response.content)
    except ValueError:
        body = response.text
    if isinstance(body, dict):
        body = body.get("error") or body.get("detail") or body
    return f"{response.status_code}: {quoted(body)}"

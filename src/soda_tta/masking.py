"""What must not be shown or stored: API keys, and credentials in addresses."""

from __future__ import annotations

import re
from urllib.parse import quote

HIDDEN = "..."
SHORTEST = 6  # characters: a shorter key would also hide words that only look like it

# `user:password@` and `?key=value` of any address in a text.
USER = re.compile(r"(?<=://)[^/\s?#'\"]+@")
QUERY = re.compile(r"(://[^\s?'\"<>]*\?)[^\s'\"<>]+")

_keys: set[str] = set()


def keep_secret(key: str) -> None:
    """Hide this key in every text that `masked` returns from now on.

    A server may echo it, for example in an error message.
    """
    if len(key) >= SHORTEST:
        _keys.update((key, quote(key, safe="")))


def masked(text: str) -> str:
    """The text without keys, and its addresses without credentials.

    >>> masked("https://me:secret@host/v2/models/cats?token=123")
    'https://...@host/v2/models/cats?...'
    """
    for key in sorted(_keys, key=len, reverse=True):  # a key may contain another one
        text = text.replace(key, HIDDEN)
    if "://" not in text:
        return text
    text = USER.sub(f"{HIDDEN}@", text)
    return QUERY.sub(rf"\g<1>{HIDDEN}", text)

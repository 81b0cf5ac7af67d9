"""Compressed bodies: opened within a limit, because a small one may become a large one."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
HEADER = "content-encoding"


def decompressed(body: bytes, headers: Mapping[str, str], most: int) -> bytes | None:
    """The body without its compression; None if it cannot be opened within `most` bytes.

    Parameters
    ----------
    body : bytes
    headers : mapping
        By lower-case name.
    most : int
        Bytes.

    Examples
    --------
    >>> import gzip
    >>> decompressed(gzip.compress(b"cats"), {"content-encoding": "gzip"}, 100)
    b'cats'
    >>> decompressed(gzip.compress(bytes(10**6)), {"content-encoding": "gzip"}, 100) is None
    True
    """
    encoding = headers.get(HEADER, "identity").lower()
    if encoding == "identity":
        return body
    if encoding not in WINDOWS:
        return None
    stream = zlib.decompressobj(WINDOWS[encoding])
    try:
        opened = stream.decompress(body, most + 1)
    except zlib.error:
        return None
    return opened if stream.eof and len(opened) <= most and not stream.unused_data else None

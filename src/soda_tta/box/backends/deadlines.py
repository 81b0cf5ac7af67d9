"""The network with a deadline.

HTTP clients bound each read and not the request, so a server that sends a byte now and then could
hold a run for ever. Here every call gets what is left until the deadline.
"""

from __future__ import annotations

import ssl
import time
from typing import Any

SENT_AT_ONCE = 2**16  # bytes between two looks at the clock


class Deadlines:
    """The network as `httpcore` uses it, where no call waits beyond `end`.

    Parameters
    ----------
    connect_to : str, optional
        The IP address to connect to, whatever the name of the host resolves to.
    """

    def __init__(self, connect_to: str | None = None) -> None:
        import httpcore

        self.connect_to = connect_to

        self.network = httpcore.SyncBackend()
        self.end = 0.0

    def left(self, kind: str) -> float:
        """Seconds until the deadline; an error of this kind once it has passed."""
        import httpcore

        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise getattr(httpcore, f"{kind}Timeout")("the deadline has passed")
        return seconds

    def connect_tcp(self, host: str, port: int, **options: Any) -> Any:
        """A connection whose reads and writes end at the deadline."""
        options["timeout"] = self.left("Connect")
        place = self.connect_to or host
        return BoundedStream(self.network.connect_tcp(place, port, **options), self)

    def sleep(self, seconds: float) -> None:
        """Called by `httpcore` between its own retries, which are turned off."""


class BoundedStream:
    """A stream of bytes whose every call ends at the deadline."""

    def __init__(self, stream: Any, clock: Deadlines) -> None:
        self.stream = stream
        self.clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes."""
        received: bytes = self.stream.read(max_bytes, timeout=self.clock.left("Read"))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes, some at a time: a server may read slowly."""
        for start in range(0, len(buffer), SENT_AT_ONCE):
            piece = buffer[start : start + SENT_AT_ONCE]
            self.stream.write(piece, timeout=self.clock.left("Write"))

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> BoundedStream:
        """The same stream, encrypted."""
        left = self.clock.left("Connect")
        stream = self.stream.start_tls(ssl_context, server_hostname, left)
        return BoundedStream(stream, self.clock)

    def close(self) -> None:
        """Close it."""
        self.stream.close()

    def get_extra_info(self, info: str) -> Any:
        """What `httpcore` asks about the connection."""
        return self.stream.get_extra_info(info)

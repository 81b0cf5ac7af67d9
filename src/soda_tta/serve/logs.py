"""Structured logs: one JSON object per line. Keys are hidden, and repeated errors are counted."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from soda_tta.foreign_text import printable

AGAIN_AFTER = 10.0  # seconds before the same warning is written again
LONGEST = 500  # characters of a text
REMEDIES = ("error", "text")  # facts that may name one


class Log:
    """Writes lines to a stream.

    Parameters
    ----------
    write : callable, optional
        Takes a line. Default: standard error.
    spelling : callable, optional
        How a remedy in an error or a notice is spelled, such as flags in place of arguments.

    Examples
    --------
    >>> log = Log(lambda line: print(sorted(json.loads(line))))
    >>> log.info("reloaded", limits={"queue": 3})
    ['event', 'level', 'limits', 'time']
    """

    def __init__(
        self,
        write: Callable[[str], Any] | None = None,
        spelling: Callable[[str], str] | None = None,
    ) -> None:
        self.write = write or sys.stderr.write
        self.spelling = spelling or str
        self.lock = threading.Lock()
        self.last: dict[str, float] = {}  # when a warning was written
        self.held_back: dict[str, int] = {}

    def info(self, event: str, **facts: Any) -> None:
        """Write one line."""
        self._line("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Write one line, unless the same event was written a moment ago."""
        now = time.monotonic()
        with self.lock:
            if now - self.last.get(event, -AGAIN_AFTER) < AGAIN_AFTER:
                self.held_back[event] = self.held_back.get(event, 0) + 1
                return
            self.last[event] = now
            repeated = self.held_back.pop(event, 0)
        self._line("warning", event, {**facts, **({"repeated": repeated} if repeated else {})})

    def _line(self, level: str, event: str, facts: dict[str, Any]) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        entry = {"time": f"{stamp}Z", "level": level, "event": event}
        entry |= {name: plain(value) for name, value in facts.items()}
        entry |= {name: self.spelling(entry[name]) for name in REMEDIES if name in entry}
        # a full disk or a closed stream must not stop the traffic
        with suppress(OSError, ValueError):
            self.write(json.dumps(entry) + "\n")


def plain(value: Any) -> Any:
    """A value as JSON; texts without keys and control characters."""
    if isinstance(value, BaseException):
        value = f"{type(value).__name__}: {value}"
    if isinstance(value, str):
        return printable(value)[:LONGEST]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, int | float | bool | None) else printable(str(value))

"""What the proxy keeps on disk: one folder, one proxy at a time, and a log of what was decided."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from soda_tta.errors import StorageError
from soda_tta.serve.logs import Log, plain
from soda_tta.serve.metrics import Metrics
from soda_tta.storage.atomic import complete_lines, make_folder
from soda_tta.storage.journal import Journal, decoded
from soda_tta.storage.locks import locked

AUDIT = "audit.jsonl"
REMEMBERED = 100  # decisions that the dashboard shows
TAIL_BYTES = 2**16  # of the log, read at the start
STEPS = ("search started", "tested", "rejected")  # too many to show each
STREAM = "strict.safetensors"  # a learner of --mode follow has its own file


class Audit:
    """Who decided what and why, as JSON lines. A full disk does not stop the traffic.

    Parameters
    ----------
    path : Path or None
        None keeps the latest decisions in memory only.
    """

    def __init__(self, path: Path | None, log: Log, metrics: Metrics) -> None:
        self.journal = Journal(path)
        self.log = log
        self.metrics = metrics
        self.recent: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)
        for entry in latest(path):
            self.show(entry)

    def write(self, event: str, **facts: Any) -> None:
        """Add a line."""
        entry = {"time": now(), "event": event, **plain(facts)}
        self.show(entry)
        try:
            self.journal.append(entry)
        except (StorageError, OSError) as error:
            self.metrics.error("storage")
            self.log.warning("the audit log could not be written", error=error)

    def show(self, entry: dict[str, Any]) -> None:
        """Remember a decision that is in the log already; the learner writes its own."""
        if entry.get("event") not in STEPS:
            self.recent.append({"time": now(), **entry})


def now() -> str:
    """The time, as the log states it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def latest(path: Path | None) -> Iterator[dict[str, Any]]:
    """The last lines of a log, without damaged ones."""
    if path is None or not path.is_file():
        return
    with path.open("rb") as file:
        start = max(0, path.stat().st_size - TAIL_BYTES)
        file.seek(start)
        lines = complete_lines(file.read()).splitlines()
    for line in lines[1:] if start else lines:
        with suppress(ValueError):
            yield decoded(line)


@contextmanager
def state_folder(path: str | Path | None) -> Iterator[Path | None]:
    """The folder of a proxy, for this process alone; None without a path."""
    if path is None:
        yield None
        return
    folder = Path(path)
    make_folder(folder)
    message = f"another proxy uses {folder}; stop it first, or choose another folder (--state)."
    with locked(folder, message):
        yield folder

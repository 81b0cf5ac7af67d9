"""How long a run takes, over all the processes it takes."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from soda_tta.errors import StorageError
from soda_tta.storage.atomic import write_text

EVERY = 1.0  # seconds between two notes: a crash loses at most this and the step under way


class Stopwatch:
    """Seconds since it was made, plus those of earlier processes once it has a file."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.earlier = 0.0
        self.noted = 0.0
        self.path: Path | None = None

    def keep(self, path: Path) -> None:
        """Continue from what the file says, and note the time there from now on."""
        self.path = path
        with suppress(OSError, ValueError):  # there is no file yet
            self.earlier = float(path.read_text())

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self.earlier + time.perf_counter() - self.began

    def tick(self) -> None:
        """Note the time if the last note is old."""
        if self.seconds - self.noted >= EVERY:
            self.note()

    def note(self) -> None:
        """Write the time down."""
        self.noted = self.seconds
        if self.path:
            with suppress(StorageError):  # a full disk is reported by files that matter more
                write_text(self.path, f"{self.seconds:.3f}")

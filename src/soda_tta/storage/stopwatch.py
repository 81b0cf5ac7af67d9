"""How long a run takes, over all the processes it takes."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from soda_tta.errors import StorageError
from soda_tta.storage.atomic import write_text

EVERY = 1.0  # seconds: a kill loses that, and the step it came into


class Stopwatch:
    """Seconds since it was made; once kept in a file, together with those of earlier processes."""

    def __init__(self) -> None:
        self.began, self.before, self.noted = time.perf_counter(), 0.0, 0.0
        self.path: Path | None = None

    def keep(self, path: Path) -> None:
        """Go on from what the file says, and note the time there from now on."""
        self.path = path
        with suppress(OSError, ValueError):  # not there yet
            self.before = float(path.read_text())

    @property
    def seconds(self) -> float:
        return self.before + time.perf_counter() - self.began

    def tick(self) -> None:
        """Something has happened."""
        if self.seconds - self.noted >= EVERY:
            self.note()

    def note(self) -> None:
        self.noted = self.seconds
        if self.path:
            with suppress(StorageError):  # a full disk is told of by what matters more
                write_text(self.path, f"{self.seconds:.3f}")

"""Ctrl-C, gently: the first asks the run to stop after its step, the second stops at once."""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """`interrupt()` is true once the user (or a container's SIGTERM) has asked to stop."""

    def __init__(self) -> None:
        self.asked = False
        self.previous: dict[int, Any] = {}

    def __call__(self) -> bool:
        return self.asked

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("\nstopping after this step; once more to stop at once.", file=sys.stderr)

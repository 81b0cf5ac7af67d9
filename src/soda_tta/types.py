"""Types that the whole package shares."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

Purpose = Literal[
    "convention", "select", "clean", "tune", "probe", "judge", "evaluate", "view", "serve", "watch"
]  # what a query is spent on
Needs = Literal["probabilities", "gradients", "weights"]  # what a method needs from the box
Stopped = Literal["finished", "budget", "interrupted"]  # why a run ended

"""Small charts made of characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STEPS = " ▁▂▃▄▅▆▇█"
PLAIN_STEPS = " .:-=+*%#"  # for terminals that show ASCII only


def sparkline(values: Sequence[float], width: int, encoding: str | None = "utf-8") -> str:
    """A row of columns as high as the values; more values than columns are averaged.

    >>> sparkline([0, 1, 2, 3], 4)
    '▁▃▆█'
    """
    if not len(values):
        return ""
    parts = np.array_split(np.asarray(values, float), min(width, len(values)))
    means = np.array([part.mean() for part in parts])
    span = float(means.max() - means.min())
    heights = 1 + 7 * (means - means.min()) / span if span > 0 else np.full(len(means), 4.0)
    return "".join(_steps(encoding)[round(float(height))] for height in heights)


def histogram(values: Sequence[float], bins: int = 20, encoding: str | None = "utf-8") -> str:
    """How often values lie in each part of [0, 1]. Empty parts stay empty, others never do."""
    counts, _ = np.histogram(values, np.linspace(0, 1, bins + 1))
    heights = np.ceil(8 * counts / max(1, counts.max())).astype(int)
    return "".join(_steps(encoding)[height] for height in heights)


def bar(share: float, width: int = 30, encoding: str | None = "utf-8") -> str:
    """A share of 1 as a filled part of a line.

    >>> bar(0.5, 8)
    '████░░░░'
    """
    full, rest = ("█", "░") if can_show(encoding) else ("#", ".")
    filled = round(width * min(1.0, max(0.0, share)))
    return full * filled + rest * (width - filled)


def _steps(encoding: str | None) -> str:
    return STEPS if can_show(encoding) else PLAIN_STEPS


def can_show(encoding: str | None) -> bool:
    """Whether a terminal with this encoding can show block characters."""
    try:
        "█▁░".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True

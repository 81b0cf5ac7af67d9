"""A few recent images before and after adaptation, small, for those who look at the dashboard."""

from __future__ import annotations

import base64
import io
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.types import Array

MOST = 12
SIDE = 96  # pixels of the longer side
EVERY = 1.0  # seconds between two images: the traffic does not pay for more


@dataclass(frozen=True)
class Pair:
    """One image before and after, (height, width, 3) in 8 bits; the same object if unchanged."""

    before: Array
    after: Array
    key: str | None
    condition: int | None


class Recent:
    """The latest images, at most one per second and twelve in all.

    Examples
    --------
    >>> recent = Recent()
    >>> images = np.zeros((2, 3, 8, 8), np.float32)
    >>> recent.offer(images, images, np.zeros(2, bool))
    >>> [each["changed"] for each in recent.as_json()]
    [False]
    """

    def __init__(self) -> None:
        self.pairs: deque[Pair] = deque(maxlen=MOST)
        self.due = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the next image is kept."""
        return time.monotonic() >= self.due

    def offer(
        self,
        images: Array,
        adapted: Array,
        different: Array,
        key: str | None = None,
        routes: Any = None,
    ) -> None:
        """Keep one image of a request, rather one that was changed; quick, from any thread."""
        if not self.is_due:
            return
        self.due = time.monotonic() + EVERY
        index = int(different.argmax())
        before = small(images[index])
        after = small(adapted[index]) if different[index] else before
        familiar = routes is not None and bool(routes.familiar[index])
        conditions = getattr(routes, "conditions", None) if familiar else None
        number = None if conditions is None else int(conditions[index])
        self.pairs.append(Pair(before, after, key, number))

    def as_json(self) -> list[dict[str, Any]]:
        """The images as PNG files in data addresses, the latest first."""
        return [
            {
                "before": as_png(pair.before),
                "after": as_png(pair.after),
                "changed": pair.after is not pair.before,
                "key": pair.key,
                "condition": pair.condition,
            }
            for pair in reversed(list(self.pairs))
        ]


def small(image: Array) -> Array:
    """Every n-th pixel of (3, height, width) in [0, 1]; means would hide the noise."""
    step = -(-max(image.shape[1:]) // SIDE)
    levels = np.rint(image[:, ::step, ::step] * 255).astype(np.uint8)
    return np.ascontiguousarray(levels.transpose(1, 2, 0))


def as_png(levels: Array) -> str:
    """The address of an image that contains it."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(levels).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()

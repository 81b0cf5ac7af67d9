"""Responses that were received already and need not be asked for again."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array


class Cache:
    """The responses already received at the current parameters, by image."""

    def __init__(self, theta: Array, rows: Array) -> None:
        self.theta = theta
        self.rows = dict(enumerate(rows))

    def missing(self, images: Array) -> Array:
        """Those of the images whose response is not known."""
        return np.array([image for image in images if image not in self.rows], int)

    def add(self, images: Array, rows: Array) -> None:
        """Responses at the current parameters."""
        self.rows.update(zip(images.tolist(), rows, strict=True))

    def move(self, theta: Array, images: Array, rows: Array) -> None:
        """Continue at other parameters, of which these responses are known."""
        self.theta = theta
        self.rows = dict(zip(images.tolist(), rows, strict=True))

    def of(self, images: Array) -> Array:
        """The responses of these images, all of which are known."""
        return np.array([self.rows[image] for image in images])

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        return {
            "theta": self.theta,
            "images": np.array(list(self.rows), np.int64),
            "rows": np.array(list(self.rows.values()), np.float32),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self.move(state["theta"], state["images"], state["rows"])

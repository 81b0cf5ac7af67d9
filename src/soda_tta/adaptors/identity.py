"""The adaptor that changes nothing: the result of a run that learned nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.types import Array


class Identity(Adaptor):
    """Leaves every image unchanged; has no parameters.

    Examples
    --------
    >>> images = np.zeros((1, 3, 8, 8), np.float32)
    >>> bool((Identity()(images) == images).all())
    True
    """

    kind = "identity"

    def __init__(self) -> None:
        self.parameters = np.zeros(0, np.float32)

    def candidates(self, images: Array, thetas: Array, noise: int | None = None) -> Array:
        return np.broadcast_to(images, (len(thetas), *images.shape))

    def differentiable(self, images: Any, theta: Any, noise: int | None = None) -> Any:
        return images

    def describe(self) -> str:
        return "leaves the image unchanged"

    def __repr__(self) -> str:
        return "Identity()"

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> Identity:
        return cls()

    def as_module(self) -> Any:
        import torch

        return torch.nn.Hardtanh(0.0, 1.0)  # clips to [0, 1], where every image is already

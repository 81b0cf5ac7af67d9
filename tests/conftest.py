"""Small things every test may use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from soda_tta.box import CallableBox

Array = np.ndarray[Any, np.dtype[Any]]


class LinearModel:
    """A classifier by mean colour that counts the images it is asked about."""

    def __init__(self, classes: int = 4, sharpness: float = 8.0) -> None:
        self.weights = sharpness * np.random.default_rng(7).normal(size=(3, classes))
        self.asked = 0

    def __call__(self, images: Array) -> Array:
        self.asked += len(images)
        logits = (images.mean(axis=(2, 3)) - 0.5) @ self.weights
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)


@pytest.fixture
def model() -> LinearModel:
    return LinearModel()


@pytest.fixture
def box(model: LinearModel) -> CallableBox:
    return CallableBox(model)


@pytest.fixture
def images() -> Array:
    """50 images of 8 x 8, each of its own colour."""
    generator = np.random.default_rng(3)
    colours = generator.random((50, 3, 1, 1))
    noise = 0.2 * generator.standard_normal((50, 3, 8, 8))
    return np.clip(colours + noise, 0, 1).astype(np.float32)

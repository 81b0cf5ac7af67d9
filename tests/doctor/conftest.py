"""A classifier by mean colour, its photographs, and the same through haze."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from soda_tta.types import Array

CENTRES = np.array([[x, y, z] for x in (0.3, 0.7) for y in (0.3, 0.7) for z in (0.3, 0.7)])[:6]


class ColourModel:
    """Six colours are six classes; counts the images it is asked about."""

    def __init__(
        self, sharpness: float = 60.0, then: Callable[[Array], Array] = lambda rows: rows
    ) -> None:
        self.sharpness, self.then, self.asked = sharpness, then, 0

    def __call__(self, images: Array) -> Array:
        self.asked += len(images)
        colours = images.astype(np.float64).mean(axis=(2, 3))
        logits = -self.sharpness * ((colours[:, None] - CENTRES) ** 2).sum(axis=2)
        rows = np.exp(logits - logits.max(axis=1, keepdims=True))
        return self.then(rows / rows.sum(axis=1, keepdims=True))


def photographs(count: int, seed: int = 0, labels: Array | None = None) -> Array:
    """8-bit images of 8 x 8, each near one of the six colours, in even number unless `labels` says otherwise."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 6 if labels is None else labels
    colours = CENTRES[labels] + 0.06 * generator.standard_normal((count, 3))
    pixels = colours[:, :, None, None] + 0.1 * generator.standard_normal((count, 3, 8, 8))
    return (np.rint(np.clip(pixels, 0, 1) * 255) / 255).astype(np.float32)


def hazy(images: Array) -> Array:
    return (np.rint((0.45 + 0.25 * (images - 0.5)) * 255) / 255).astype(np.float32)


@pytest.fixture
def make() -> Callable[..., Array]:
    return photographs


@pytest.fixture
def haze() -> Callable[[Array], Array]:
    return hazy


@pytest.fixture
def colour_model() -> type[ColourModel]:
    return ColourModel

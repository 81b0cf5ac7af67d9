"""A classifier of mean colours, images of these colours, and the same images in haze."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from soda_tta.types import Array

CENTRES = np.array([[x, y, z] for x in (0.3, 0.7) for y in (0.3, 0.7) for z in (0.3, 0.7)])[:6]


class ColourModel:
    """A model whose six classes are six colours; it counts its queries."""

    def __init__(
        self, sharpness: float = 60.0, then: Callable[[Array], Array] = lambda rows: rows
    ) -> None:
        self.sharpness = sharpness
        self.then = then
        self.queries = 0

    def __call__(self, images: Array) -> Array:
        self.queries += len(images)
        colours = images.astype(np.float64).mean(axis=(2, 3))
        logits = -self.sharpness * ((colours[:, None] - CENTRES) ** 2).sum(axis=2)
        rows = np.exp(logits - logits.max(axis=1, keepdims=True))
        return self.then(rows / rows.sum(axis=1, keepdims=True))


def make_images(count: int, seed: int = 0, labels: Array | None = None) -> Array:
    """8-bit images of 8 x 8 pixels, each near one of the six colours; balanced without `labels`."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 6 if labels is None else labels
    colours = CENTRES[labels] + 0.06 * generator.standard_normal((count, 3))
    pixels = colours[:, :, None, None] + 0.1 * generator.standard_normal((count, 3, 8, 8))
    return (np.rint(np.clip(pixels, 0, 1) * 255) / 255).astype(np.float32)


def add_haze(images: Array) -> Array:
    """The images with a quarter of their contrast."""
    return (np.rint((0.45 + 0.25 * (images - 0.5)) * 255) / 255).astype(np.float32)


@pytest.fixture
def make() -> Callable[..., Array]:
    return make_images


@pytest.fixture
def haze() -> Callable[[Array], Array]:
    return add_haze


@pytest.fixture
def colour_model() -> type[ColourModel]:
    return ColourModel

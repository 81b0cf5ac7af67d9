"""Live traffic for tests: scenes of four kinds, some faded, and a model that fading deceives."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array

SIDE = 16
KINDS = np.random.default_rng(0).random((4, 3, 4, 4)).repeat(4, axis=2).repeat(4, axis=3)


def scenes(count: int, seed: int, *, faded: bool = False) -> tuple[Array, Array]:
    """Images and their classes."""
    random = np.random.default_rng(seed)
    labels = random.integers(4, size=count)
    own = random.random((count, 3, 4, 4)).repeat(4, axis=2).repeat(4, axis=3)
    images = 0.55 * KINDS[labels] + 0.45 * own + random.normal(0, 0.1, (count, 3, SIDE, SIDE))
    images = np.clip(images, 0, 1)
    if faded:
        images = 0.45 + 0.12 * (images - 0.5)
    return images.astype(np.float32), labels


class Templates:
    """Compares images with the four kinds. It guesses the first kind if the contrast is low."""

    def __init__(self) -> None:
        kinds = KINDS.reshape(4, -1)
        self.weights = (kinds - kinds.mean(axis=0)) / kinds.shape[1]
        self.replaced = False  # by a model that knows faded images, and only those
        self.asked = 0
        self.fails = False

    def __call__(self, images: Array) -> Array:
        if self.fails and len(images) != 20:  # answers are asked for in requests of 20
            raise RuntimeError("out of order")
        self.asked += len(images)
        logits = 100 * (images.reshape(len(images), -1) - 0.5) @ self.weights.T
        if self.replaced:
            logits *= 8
            logits[:, 0] += 400 * np.maximum(0, images.std(axis=(1, 2, 3)) - 0.1)
        else:
            logits[:, 0] += 1.5
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def answered(stream, images: Array, labels: Array, **names) -> Array:
    """Whether each image of some requests was answered correctly."""
    right = [
        stream(images[start : start + 20], **names).argmax(axis=1) == labels[start : start + 20]
        for start in range(0, len(images), 20)
    ]
    return np.concatenate(right)

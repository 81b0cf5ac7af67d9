"""Small synthetic images and models for the checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.box import Box, load_box
from soda_tta.types import Array

CLASSES = 4


def make_images(count: int = 64, size: int = 12, seed: int = 3) -> Array:
    """Images of one colour each, with some noise: float32 (count, 3, size, size) in [0, 1]."""
    random = np.random.default_rng(seed)
    colours = random.random((count, 3, 1, 1))
    noise = 0.2 * random.standard_normal((count, 3, size, size))
    return np.clip(colours + noise, 0, 1).astype(np.float32)


def make_black_box() -> Box:
    """A classifier by mean colour, of which only probabilities can be seen."""
    weights = 8 * np.random.default_rng(7).normal(size=(3, CLASSES))

    def classify(images: Array) -> Array:
        logits = (images.mean(axis=(2, 3)) - 0.5) @ weights
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        rows: Array = powers / powers.sum(axis=1, keepdims=True)
        return rows

    return load_box(classify)


def make_white_box() -> Box:
    """A small PyTorch network with a batch norm and random weights."""
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: Any = nn.Sequential(
            nn.Conv2d(3, 6, 3),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(24, CLASSES),
        ).eval()
    return load_box(module, logits=True)

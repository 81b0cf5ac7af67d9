"""Coloured images, a tiny network and a teacher that is sometimes wrong."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

CLASSES = 4
WRONG = 0.2  # share of the teacher's wrong answers
COLOURS = np.array([[0.9, 0.2, 0.2], [0.2, 0.9, 0.2], [0.2, 0.2, 0.9], [0.8, 0.8, 0.2]], np.float32)


def coloured(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images of one colour each, and their labels."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, CLASSES, count)
    noise = 0.15 * generator.standard_normal((count, 3, 12, 12))
    return np.clip(COLOURS[labels][:, :, None, None] + noise, 0, 1).astype(np.float32), labels


def certain(labels: np.ndarray) -> np.ndarray:
    """Probabilities that are 1 for these labels."""
    return np.eye(CLASSES, dtype=np.float32)[labels]


def tiny(classes: int = CLASSES) -> nn.Module:
    """A small convolutional network, always with the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(32, classes),
            nn.Softmax(dim=1),
        )


class Teacher:
    """A model that is right four times in five, always with confidence 0.7; it counts queries."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        generator = np.random.default_rng(5)
        wrong = generator.random(len(labels)) < WRONG
        others = (labels + generator.integers(1, CLASSES, len(labels))) % CLASSES
        rows = 0.6 * np.eye(CLASSES)[np.where(wrong, others, labels)] + 0.1
        self.answers = {image.tobytes(): row for image, row in zip(images, rows, strict=True)}
        self.queries = 0

    def __call__(self, images: np.ndarray) -> np.ndarray:
        self.queries += len(images)
        return np.stack([self.answers[image.tobytes()] for image in images]).astype(np.float32)


def small(method, **settings):
    """A method with few epochs and the tiny network."""
    few = {
        "epochs": 2,
        "finetune_epochs": 2,
        "batch": 16,
        "module": tiny(),
        "backbone_lr": 0.01,
    }
    return method.but(**{**few, **settings})


@pytest.fixture(scope="session")
def toy() -> SimpleNamespace:
    """All of the above."""
    return SimpleNamespace(
        classes=CLASSES,
        wrong=WRONG,
        coloured=coloured,
        certain=certain,
        tiny=tiny,
        teacher=Teacher,
        small=small,
    )

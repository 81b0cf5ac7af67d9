"""Models that fail, images that a restoration helps, and the comparison of two run folders."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from soda_tta.errors import BoxError
from soda_tta.types import Array


class FailingModel:
    """A model that fails once it would have received more than `most` images in all.

    It stays the same object and therefore keeps its fingerprint: a resumed run accepts it.
    """

    def __init__(self, model) -> None:
        self.model = model
        self.most: float = np.inf

    def __call__(self, images: Array) -> Array:
        if self.model.asked + len(images) > self.most:
            raise BoxError("the model is gone")
        return self.model(images)


@pytest.fixture
def failing(model) -> FailingModel:
    return FailingModel(model)


@pytest.fixture
def faded_images() -> Callable[..., Array]:
    """A function that makes images of little contrast, each with its own colour.

    A model that goes by colour gains from restoring the contrast.
    """

    def make(count: int = 120) -> Array:
        generator = np.random.default_rng(3)
        colours = generator.random((count, 3, 1, 1))
        noise = 0.2 * generator.standard_normal((count, 3, 8, 8))
        return np.clip(0.4 + 0.2 * (colours + noise), 0, 1).astype(np.float32)

    return make


@pytest.fixture
def assert_same_files() -> Callable[[Path, Path], None]:
    """A function that compares two run folders byte for byte.

    `run.json` may differ in the seconds and in queries that a crash lost.
    """

    def check(first: Path, second: Path) -> None:
        names = sorted(path.name for path in first.iterdir())
        assert names == sorted(path.name for path in second.iterdir())
        for name in names:
            if name != "run.json":
                assert (first / name).read_bytes() == (second / name).read_bytes(), name
        assert comparable_card(first) == comparable_card(second)

    return check


def comparable_card(folder: Path) -> dict:
    card = json.loads((folder / "run.json").read_text())
    card.pop("seconds")
    card.pop("queries_per_image")
    card.pop("calls")  # those that a crash lost count too
    card["queries"].pop("lost", None)  # billed at a crash and reported as lost
    return card

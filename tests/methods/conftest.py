"""A run in progress for tests that call a method directly."""

from collections.abc import Callable

import numpy as np
import pytest

from soda_tta.box import CallableBox, Meter
from soda_tta.data import open_images
from soda_tta.engine.plan import Plan
from soda_tta.engine.work import Work


def refuse(images: np.ndarray) -> np.ndarray:
    """A model that must not be queried."""
    raise AssertionError("a query was sent")


@pytest.fixture
def make_work() -> Callable[..., Work]:
    """A function that makes a Work; without a box, its model must not be queried."""

    def make(images: np.ndarray, before, box=None, seed: int = 0) -> Work:
        count = len(images)
        return Work(
            images=open_images(images),
            meter=Meter(box or CallableBox(refuse)),
            before=np.array(before),
            plan=Plan(count, epochs=1, queries={"select": count}, limit=None),
            seed=seed,
        )

    return make

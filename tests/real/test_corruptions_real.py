"""The corruptions lower the accuracy of a real classifier as much as the published ones do.

Accuracy of a CIFAR-10 ResNet-20 at severity 5 on all 10,000 test images. The expected values were
measured on images of the public CIFAR generator, with its own random draws; ours must be within
three points.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from soda_tta import Box, zoo
from soda_tta.data import Corrupted, Dataset, load_dataset
from soda_tta.data.corruptions import CORRUPTIONS

pytestmark = pytest.mark.real

CLEAN = 92.60
# accuracy of the same model on images of the public CIFAR generator
EXPECTED = json.loads(
    (Path(__file__).parents[2] / "results" / "corruptions" / "public.json").read_text()
)


@pytest.fixture(scope="module")
def clean(real_data: Path) -> Dataset:
    return load_dataset("cifar10")


@pytest.fixture(scope="module")
def box(real_data: Path) -> Box:
    return zoo.deployed("cifar10_resnet20")


def accuracy(box: Box, dataset: Dataset) -> float:
    starts = range(0, len(dataset), 500)
    predictions = np.concatenate(
        [box(dataset[slice(start, start + 500)]).argmax(axis=1) for start in starts]
    )
    return float(100 * (predictions == dataset.labels).mean())


def test_the_clean_accuracy_is_the_known_one(box: Box, clean: Dataset) -> None:
    assert accuracy(box, clean) == pytest.approx(CLEAN, abs=0.05)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_accuracy_is_within_three_points_of_the_public_generator(
    name: str, box: Box, clean: Dataset, real_data: Path
) -> None:
    frost = real_data / "frost"
    if name == "frost" and not frost.is_dir():
        pytest.skip(f"{frost} does not exist")
    corrupted = Corrupted(clean, name, severity=5, frost=frost if name == "frost" else None)
    assert accuracy(box, corrupted) == pytest.approx(EXPECTED[name], abs=3)


def test_drawn_frost_costs_as_much_as_photographs_of_frost(box: Box, clean: Dataset) -> None:
    assert accuracy(box, Corrupted(clean, "frost", severity=5)) == pytest.approx(
        EXPECTED["frost"], abs=3
    )

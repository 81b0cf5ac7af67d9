"""Do the corruptions cost a real classifier what the published ones cost it?

Accuracy of a CIFAR-10 ResNet-20 at severity 5, all 10,000 test images. The expected numbers were measured on
images made by the public CIFAR generator with random draws of its own; ours must land within three points.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from soda_tta import Box, zoo
from soda_tta.data import Corrupted, Dataset, load_dataset
from soda_tta.data.corruptions import CORRUPTIONS

pytestmark = pytest.mark.real

CLEAN = 92.60
BAND = {
    "gaussian_noise": 21.3,
    "shot_noise": 26.0,
    "impulse_noise": 23.1,
    "speckle_noise": 31.3,
    "defocus_blur": 50.6,
    "glass_blur": 41.5,
    "motion_blur": 58.9,
    "zoom_blur": 55.9,
    "gaussian_blur": 32.1,
    "snow": 68.7,
    "frost": 55.4,
    "fog": 64.2,
    "brightness": 87.1,
    "contrast": 25.2,
    "elastic_transform": 68.4,
    "pixelate": 39.8,
    "jpeg_compression": 68.3,
    "spatter": 72.4,
    "saturate": 84.5,
}


@pytest.fixture(scope="module")
def clean(real_data: Path) -> Dataset:
    return load_dataset("cifar10")


@pytest.fixture(scope="module")
def box(real_data: Path) -> Box:
    return zoo.deployed("cifar10_resnet20")


def accuracy(box: Box, dataset: Dataset) -> float:
    starts = range(0, len(dataset), 500)
    answers = np.concatenate([box(dataset[slice(start, start + 500)]).argmax(axis=1) for start in starts])
    return float(100 * (answers == dataset.labels).mean())


def test_clean(box: Box, clean: Dataset) -> None:
    assert accuracy(box, clean) == pytest.approx(CLEAN, abs=0.05)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_inside_the_band(name: str, box: Box, clean: Dataset, real_data: Path) -> None:
    frost = real_data / "frost"
    if name == "frost" and not frost.is_dir():
        pytest.skip(f"{frost} does not exist")
    corrupted = Corrupted(clean, name, severity=5, frost=frost if name == "frost" else None)
    assert accuracy(box, corrupted) == pytest.approx(BAND[name], abs=3)


def test_drawn_frost_does_what_photographs_do(box: Box, clean: Dataset) -> None:
    assert accuracy(box, Corrupted(clean, "frost", severity=5)) == pytest.approx(BAND["frost"], abs=3)

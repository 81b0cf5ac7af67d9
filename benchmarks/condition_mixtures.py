"""The mixtures of benchmarks/conditions.py: which images of which corruption in one folder."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from soda_tta.data import Dataset, load_dataset
from soda_tta.data.corruption_names import CORRUPTIONS
from soda_tta.data.corruptions import corrupt
from soda_tta.types import Array

CLEAN = "clean"
AT_ONCE = 100  # images that are corrupted together


class Mixture(NamedTuple):
    """Parts of equal size: a corruption and its severity each; a part may occur more than once."""

    name: str
    parts: tuple[tuple[str, int], ...]


FOUR = Mixture(
    "noise, defocus, contrast, clean",
    (("gaussian_noise", 5), ("defocus_blur", 5), ("contrast", 5), (CLEAN, 0)),
)
FIVE = Mixture(
    "fog, JPEG, impulse noise, motion blur, clean",
    (("fog", 5), ("jpeg_compression", 5), ("impulse_noise", 5), ("motion_blur", 5), (CLEAN, 0)),
)
ALL_CLEAN = Mixture("all 19 and clean", (*((name, 5) for name in CORRUPTIONS), (CLEAN, 0)))
SEVERITIES = Mixture("gaussian noise 1, 3, 5", tuple(("gaussian_noise", s) for s in (1, 3, 5)))
RARE = Mixture("95 % clean, 5 % noise", (("gaussian_noise", 5), *((CLEAN, 0),) * 19))
# What the design was developed on, with cifar10_resnet32; no figure of it is reported.
DEVELOPED_ON = Mixture(
    "development",
    (("shot_noise", 5), ("glass_blur", 5), ("brightness", 5), ("pixelate", 5), (CLEAN, 0)),
)


class Mixed(NamedTuple):
    """Images of a mixture: pixels, labels, and the part of each."""

    images: Array  # uint8, NHWC
    labels: Array
    parts: Array  # integers


def mixed(mixture: Mixture, data: str, count: int) -> Mixed:
    """The first `count` of the shuffled images, each part spread evenly over them."""
    dataset: Dataset = load_dataset(data)
    random = np.random.default_rng(0)
    places = np.sort(random.permutation(len(dataset))[:count])
    parts = random.permutation(count) % len(mixture.parts)
    first = dataset[places[:1]]
    images = np.empty((count, *first.shape[2:], 3), np.uint8)
    for number, (corruption, severity) in enumerate(mixture.parts):
        own = np.flatnonzero(parts == number)
        for start in range(0, len(own), AT_ONCE):
            piece = own[start : start + AT_ONCE]
            pixels = dataset[places[piece]]
            if corruption != CLEAN:
                pixels = corrupt(pixels, corruption, severity, seed=1000 * number + start)
            images[piece] = np.rint(255 * pixels).astype(np.uint8).transpose(0, 2, 3, 1)
    return Mixed(images, np.asarray(dataset.labels)[places], parts)

"""soda-e on a real model: it gains on corrupted images and does no harm to clean ones."""

import numpy as np
import pytest

from soda_tta import adapt, zoo
from soda_tta.data import Corrupted, load_dataset

pytestmark = pytest.mark.real
CATS_AND_SHIPS = (3, 8)


@pytest.fixture(scope="module")
def box(real_data):
    return zoo.deployed("cifar10_resnet20", threads=1)


@pytest.fixture(scope="module")
def images(real_data):
    return load_dataset("cifar10").subset(slice(0, 1000))


@pytest.fixture(scope="module")
def unbalanced(real_data):
    """1,000 images, 90 % of them of two classes."""
    whole = load_dataset("cifar10")
    of_two = np.isin(whole.labels, CATS_AND_SHIPS)
    places = np.concatenate([np.flatnonzero(of_two)[:900], np.flatnonzero(~of_two)[:100]])
    return whole.subset(np.sort(places))


def points(images, labels, box):
    """The run, and its gain in percentage points."""
    run = adapt(images, box, method="soda-e", budget=10)
    before = 100 * (run.before.argmax(axis=1) == labels).mean()
    after = 100 * (run.probabilities.argmax(axis=1) == labels).mean()
    assert run.queries_per_image <= 10
    return run, after - before


def test_noise_is_removed_at_ten_queries_per_image(box, images) -> None:
    run, gain = points(Corrupted(images, "gaussian_noise", 5)[slice(None)], images.labels, box)
    assert gain >= 35
    assert run.verdict.adopt
    assert any(
        word in run.adaptor.describe() for word in ("means", "shrinkage", "median", "smooth")
    )


def test_clean_images_stay_within_half_a_point(box, images) -> None:
    _, gain = points(images[slice(None)], images.labels, box)
    assert gain >= -0.5


@pytest.mark.parametrize("corruption", [None, "jpeg_compression"])
def test_a_batch_mostly_of_two_classes_is_never_more_than_a_point_worse(
    box, unbalanced, corruption
) -> None:
    source = unbalanced if corruption is None else Corrupted(unbalanced, corruption, 5)
    _, gain = points(source[slice(None)], unbalanced.labels, box)
    assert gain >= -1

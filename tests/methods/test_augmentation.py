"""Test-time augmentation: which views there are, and how their answers are merged."""

import numpy as np
import pytest

from soda_tta import MethodError, adapt, load_box
from soda_tta.methods.augmentation import majority, random_crops, shifted, tta, zero
from soda_tta.objectives import mutual_information
from soda_tta.testing.data import make_images

IMAGES = make_images(6, size=32)


def left_half(images):
    """A model that is sensitive to the side of an image."""
    share = images[..., : images.shape[3] // 2].mean(axis=(1, 2, 3))
    return np.stack([share, 1 - share], axis=1)


def test_two_views_are_the_image_and_its_mirror_image() -> None:
    run = adapt(IMAGES, load_box(left_half), method="tta", views=2)
    expected = (left_half(IMAGES) + left_half(IMAGES[..., ::-1])) / 2
    np.testing.assert_allclose(run.probabilities, expected, atol=1e-6)
    assert run.ledger.queries == {"select": 6, "probe": 6}


def test_a_step_has_the_information_of_its_answers() -> None:
    run = adapt(IMAGES, load_box(left_half), method="tta", views=2, batch=3)
    information = [step.mutual_information for step in run.history]
    assert information == [mutual_information(run.probabilities[:3]), *information[1:]]
    assert min(information) > 0


def test_ten_views_are_ten_different_images() -> None:
    views = [tta.view(IMAGES, number, seed=0, batch=1) for number in range(10)]
    assert len({view.tobytes() for view in views}) == 10
    np.testing.assert_array_equal(views[0], IMAGES)
    np.testing.assert_array_equal(views[2][:, :, 2:, 2:], IMAGES[:, :, :-2, :-2])
    np.testing.assert_array_equal(shifted(IMAGES, 4)[:, :, :-2, :-2], IMAGES[:, :, 2:, 2:])


def test_random_crops_are_windows_of_the_image() -> None:
    ramp = np.broadcast_to(np.linspace(0, 1, 32, dtype=np.float32), (200, 3, 32, 32))
    crops = random_crops(ramp, 0.25, np.random.default_rng(0))
    extent = crops[:, 0, 0].max(axis=1) - crops[:, 0, 0].min(axis=1)
    assert 0.3 < extent.min() < 0.6 and extent.max() <= 1
    rising = crops[:, 0, 0, -1] > crops[:, 0, 0, 0]
    assert 0.3 < rising.mean() < 0.7  # half of them are mirrored


def test_the_geometric_mean() -> None:
    rows = np.array([[[0.9, 0.1]], [[0.4, 0.6]]])
    root = np.sqrt([0.36, 0.06])
    merged = tta.but(merge="geometric").merged(rows)
    np.testing.assert_allclose(merged[0], root / root.sum(), atol=1e-6)


def test_the_majority_of_the_confident_views() -> None:
    """Two confident views outvote three that are not; a tie goes to the most confident view."""
    rows = np.array([[[0.1, 0.9]], [[0.15, 0.85]], [[0.6, 0.4]], [[0.6, 0.4]], [[0.6, 0.4]]])
    assert majority(rows, kept=0.4).argmax() == 1
    assert majority(rows, kept=1.0).argmax() == 0
    tied = np.array([[[0.7, 0.3]], [[0.2, 0.8]]])
    assert majority(tied, kept=1.0).argmax() == 1


def test_zero_keeps_nineteen_of_64_views() -> None:
    assert (zero.views, zero.kept, round(zero.kept * zero.views)) == (64, 0.3, 19)
    assert zero.queries(10) == {"probe": 630}


@pytest.mark.parametrize("settings", [{"views": 1}, {"merge": "vote"}, {"kept": 0}, {"area": 2}])
def test_impossible_settings_are_refused(settings) -> None:
    with pytest.raises(MethodError):
        tta.but(**settings)

"""Wrong pixels and coarse pixels: repaired where an image shows them, and nothing changes else."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from soda_tta.adaptors.repairs import (
    catmull_rom,
    interpolation,
    without_coarse_pixels,
    without_wrong_pixels,
)


def smooth_images(count: int = 8, side: int = 32, seed: int = 0) -> torch.Tensor:
    """Random images without extreme values, as photographs mostly are."""
    random = torch.Generator().manual_seed(seed)
    small = torch.rand(count, 3, 6, 6, generator=random)
    return 0.2 + 0.6 * F.interpolate(small, size=(side, side), mode="bicubic").clamp(0, 1)


def mean_error(images: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((images - wanted).abs().mean())


@pytest.mark.parametrize("share", [0.02, 0.1, 0.25])
def test_wrong_pixels_are_replaced(share: float) -> None:
    images = smooth_images()
    drawn = torch.rand(images.shape, generator=torch.Generator().manual_seed(1))
    wrong = images.where(drawn > share / 2, torch.zeros(())).where(
        drawn < 1 - share / 2, torch.ones(())
    )
    assert mean_error(without_wrong_pixels(wrong), images) < 0.05 * mean_error(wrong, images)


def test_images_without_wrong_pixels_stay_as_they_are() -> None:
    images = smooth_images()
    torch.testing.assert_close(without_wrong_pixels(images), images, rtol=0, atol=0)


def test_black_and_white_areas_are_not_wrong() -> None:
    image = torch.zeros(1, 3, 12, 12)
    image[..., 6:] = 1
    torch.testing.assert_close(without_wrong_pixels(image), image, rtol=0, atol=0)


@pytest.mark.parametrize(("coarse", "left"), [(16, 0.6), (20, 0.6), (26, 0.8)])
def test_coarse_pixels_are_interpolated(coarse: int, left: float) -> None:
    images = smooth_images()
    small = F.interpolate(images, size=(coarse, coarse), mode="area")
    large = F.interpolate(small, size=(32, 32), mode="nearest-exact")
    assert mean_error(without_coarse_pixels(large), images) < left * mean_error(large, images)


def test_images_of_distinct_lines_stay_as_they_are() -> None:
    images = torch.rand(4, 3, 17, 23, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(without_coarse_pixels(images), images)


def test_a_flat_image_stays_flat() -> None:
    images = torch.full((2, 3, 9, 7), 0.3)
    torch.testing.assert_close(without_coarse_pixels(images), images)


def test_interpolation_by_hand() -> None:
    # Four lines are two coarse pixels; their centres lie at 0.5 and 2.5.
    matrix = interpolation(torch.tensor([[0.0, 1.0, 0.0]]))[0]
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-6)
    values = torch.tensor([0.0, 0.0, 1.0, 1.0])
    # Line 1 is a quarter of the way from the first to the second, line 0 has no neighbour before.
    weights = catmull_rom(torch.tensor(0.25))
    expected = float(weights[2] + weights[3])
    np.testing.assert_allclose((matrix @ values)[:2], [0, expected], atol=1e-6)
    np.testing.assert_allclose((matrix @ values)[2:], [1 - expected, 1], atol=1e-6)


def test_weights_of_a_cubic_interpolation_reproduce_a_straight_line() -> None:
    for way in torch.linspace(0, 1, 5):
        weights = torch.stack(catmull_rom(way))
        np.testing.assert_allclose(weights.sum(), 1, atol=1e-6)
        np.testing.assert_allclose(weights @ torch.tensor([-1.0, 0.0, 1.0, 2.0]), way, atol=1e-6)

"""Zoom: sizes, borders and directions."""

import numpy as np
import pytest
import torch

from soda_tta.adaptors.zooming import interpolation, zoomed


@pytest.mark.parametrize("factor", [0.6, 0.88, 1.0, 1.14, 2.0])
def test_every_pixel_takes_the_whole_of_some_pixels(factor: float) -> None:
    matrix = interpolation(9, torch.tensor(factor))
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-6)
    assert (matrix >= 0).all()


def test_a_square_grows_when_zooming_in_and_shrinks_when_zooming_out() -> None:
    image = torch.zeros(1, 3, 16, 16)
    image[..., 5:11, 5:11] = 1
    inside = zoomed(image, torch.tensor(1.5)).sum()
    outside = zoomed(image, torch.tensor(0.75)).sum()
    assert outside < image.sum() < inside
    torch.testing.assert_close(inside, 1.5**2 * image.sum(), rtol=0.03, atol=0)


def test_zooming_out_mirrors_the_border() -> None:
    line = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0]).expand(1, 1, 8, 8)
    out = zoomed(line, torch.tensor(0.5))[0, 0, 0]
    assert out[1] > 0 and out[2] > 0 and float(out[3:].abs().max()) == 0


def test_a_factor_of_one_leaves_the_image() -> None:
    image = torch.rand(2, 3, 11, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(zoomed(image, torch.tensor(1.0)), image)

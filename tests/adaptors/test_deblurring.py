"""Inverse filters against scipy, and on images that were blurred."""

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import torch

from soda_tta.adaptors.deblurring import REGULARISATION, deblurred


@pytest.mark.parametrize(("height", "width"), [(16, 16), (7, 10)])
def test_the_filter_equals_its_definition(height: int, width: int) -> None:
    image = np.random.default_rng(0).random((1, 3, height, width))
    frequencies = np.hypot(
        np.arange(height)[:, None] / (2 * height), np.arange(width)[None] / (2 * width)
    )
    blur = np.exp(-2 * (np.pi * 1.2 * frequencies) ** 2)
    gain = (1 + REGULARISATION) * blur / (blur**2 + REGULARISATION)
    spectrum = scipy.fft.dctn(image, axes=(2, 3), norm="ortho")
    expected = scipy.fft.idctn(spectrum * gain, axes=(2, 3), norm="ortho")
    (result,) = deblurred(torch.from_numpy(image.astype(np.float32)), (1.2,))
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-5)


def test_the_right_radius_undoes_a_blur_best() -> None:
    random = np.random.default_rng(1)
    sharp = scipy.ndimage.gaussian_filter(random.random((4, 3, 32, 32)), (0, 0, 1, 1)) * 2 - 0.5
    blurred = scipy.ndimage.gaussian_filter(sharp, (0, 0, 1, 1))
    images = torch.from_numpy(np.rint(blurred * 255).astype(np.float32) / 255)
    errors = [
        float(np.square(each.numpy() - sharp).mean()) for each in deblurred(images, (0.5, 1.0, 2.0))
    ]
    assert errors[1] < 0.3 * np.square(blurred - sharp).mean()
    assert errors[1] == min(errors)

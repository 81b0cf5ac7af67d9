"""The measured response of adaptors whose effect is known."""

from typing import Any

import numpy as np
import pytest

from soda_tta.adaptors import Identity
from soda_tta.data import open_images
from soda_tta.report.response import generate_pictures, measure_response
from soda_tta.report.response_text import describe_response


class Known(Identity):
    """An adaptor that applies a function."""

    kind = "known-in-tests"

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def candidates(self, images: Any, thetas: Any, noise: int | None = None) -> Any:
        return np.clip(self.function(images), 0, 1).astype(np.float32)[None]


def three_tap(images: Any) -> Any:
    """A periodic blur along both axes, whose transfer function is known exactly."""
    rows = (np.roll(images, 1, 2) + images + np.roll(images, -1, 2)) / 3
    return (np.roll(rows, 1, 3) + rows + np.roll(rows, -1, 3)) / 3


def test_the_identity_has_a_flat_response() -> None:
    response = measure_response(Identity(), (32, 32), None)
    np.testing.assert_allclose(response.gain, 1, atol=1e-4)
    np.testing.assert_allclose(response.tone[0], response.level, atol=0.02)
    assert (
        response.change == 0 and "leaves the images as they are" in describe_response(response)[0]
    )


def test_the_gain_of_a_blur_is_its_transfer_function() -> None:
    response = measure_response(Known(three_tap), (32, 32), None)
    np.testing.assert_allclose(
        response.gain, (1 + 2 * np.cos(2 * np.pi * response.frequency)) / 3, atol=1e-3
    )
    assert any("Fine detail is" in sentence for sentence in describe_response(response))


def test_the_tone_curve_of_a_gamma_is_that_gamma() -> None:
    response = measure_response(Known(lambda images: images**2), (32, 32), None)
    np.testing.assert_allclose(np.nanmean(response.tone, axis=0), response.level**2, atol=0.02)
    assert any("darker" in sentence for sentence in describe_response(response))


def test_a_tone_curve_that_depends_on_the_image_is_recognised() -> None:
    def standardised(images: Any) -> Any:
        return 0.5 + 0.2 * (images - images.mean((1, 2, 3), keepdims=True)) / images.std(
            (1, 2, 3), keepdims=True
        )

    pictures = 0.3 * np.random.default_rng(0).random((20, 16, 16, 3)) + np.linspace(
        0, 0.7, 20
    ).reshape(20, 1, 1, 1)
    images = open_images(pictures.astype(np.float32))
    assert not measure_response(Known(standardised), (16, 16), images).common
    assert measure_response(Known(lambda images: images**2), (16, 16), images).common


def test_a_tint_is_named() -> None:
    tint = np.array([0.1, 0.0, -0.1]).reshape(1, 3, 1, 1)
    sentences = describe_response(
        measure_response(Known(lambda images: 0.8 * images + 0.1 + tint), (32, 32), None)
    )
    assert any("red +10%" in sentence and "blue -10%" in sentence for sentence in sentences)
    assert any("Contrast is lowered to 0.8 times" in sentence for sentence in sentences)


@pytest.mark.parametrize("size", [(2, 2), (3, 40), (300, 8), (16, 16)])
def test_any_size_is_measured(size: tuple[int, int]) -> None:
    response = measure_response(Known(lambda images: 1 - images), size, None)
    assert np.isfinite(response.gain).all() and response.gain.mean() == pytest.approx(-1, abs=0.2)
    assert generate_pictures(size).min() >= 0 and generate_pictures(size).max() <= 1


def test_the_images_of_the_run_are_used_if_available() -> None:
    # three flat images: no contrast to compare, one tone
    grey = np.full((3, 8, 8, 3), 128, np.uint8)
    response = measure_response(Known(lambda images: images / 2), (8, 8), open_images(grey))
    assert not response.synthetic and response.pictures == 3 and len(response.level) == 1
    assert response.contrast == 1 and describe_response(response)

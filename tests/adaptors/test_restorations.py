"""Each restoration against a slow and obvious implementation."""

import math

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import torch
from torch.nn import functional

from soda_tta.adaptors import restorations as restore


def some_images(count: int = 2, height: int = 9, width: int = 7, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3, height, width), dtype=np.float32)


def planes(images: np.ndarray):
    return (image for image in images.reshape(-1, *images.shape[2:]))


def test_the_median_is_taken_over_nine_pixels() -> None:
    images = some_images(4, 11, 8)
    slow = [scipy.ndimage.median_filter(plane, 3, mode="mirror") for plane in planes(images)]
    np.testing.assert_array_equal(
        restore.median(torch.from_numpy(images)).numpy(), np.reshape(slow, images.shape)
    )


def test_the_median_removes_a_single_wrong_pixel_and_keeps_an_edge() -> None:
    edge = np.zeros((1, 3, 8, 8), np.float32)
    edge[:, :, :, 4:] = 1
    wrong = edge.copy()
    wrong[:, :, 3, 1] = 1
    np.testing.assert_array_equal(restore.median(torch.from_numpy(wrong)).numpy(), edge)


def slow_cosine_shrinkage(
    image: np.ndarray, threshold: float, size: int, stride: int
) -> np.ndarray:
    """Block by block, with scipy's cosine transform."""
    axes = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    turned = np.einsum("ac,cyx->ayx", axes, image)
    margin = size - 1
    wide = np.pad(turned, ((0, 0), (margin, margin), (margin, margin)), mode="reflect")
    total = np.zeros_like(wide)
    weights = np.zeros_like(wide)
    for plane in range(3):
        for y in range(0, wide.shape[1] - margin, stride):
            for x in range(0, wide.shape[2] - margin, stride):
                block = scipy.fft.dctn(wide[plane, y : y + size, x : x + size], norm="ortho")
                kept = np.abs(block) > threshold
                kept[0, 0] = True
                total[plane, y : y + size, x : x + size] += (
                    scipy.fft.idctn(block * kept, norm="ortho") / kept.sum()
                )
                weights[plane, y : y + size, x : x + size] += 1 / kept.sum()
    restored = total[:, margin:-margin, margin:-margin] / weights[:, margin:-margin, margin:-margin]
    return np.einsum("ac,ayx->cyx", axes, restored)


# the last threshold leaves only the means of the blocks
@pytest.mark.parametrize("threshold", [0.15, 0.3, 100.0])
@pytest.mark.parametrize(("size", "stride"), [(4, 1), (8, 3)])
def test_cosine_shrinkage_equals_scipys_transform(threshold: float, size: int, stride: int) -> None:
    (image,) = images = some_images(1, 12, 9, seed=4)
    (fast,) = restore.cosine_shrinkage(torch.from_numpy(images), (threshold,), size, stride)
    slow = slow_cosine_shrinkage(image.astype(float), threshold, size, stride)
    np.testing.assert_allclose(fast[0].numpy(), slow, atol=2e-5)


def test_cosine_shrinkage_that_drops_nothing_is_the_identity() -> None:
    images = some_images(3, 12, 10)
    nothing, little = restore.cosine_shrinkage(torch.from_numpy(images), (0.0, 0.2))
    np.testing.assert_allclose(nothing.numpy(), images, atol=2e-6)
    assert np.abs(little.numpy() - images).max() > 0.05


@pytest.mark.parametrize("sigma", [0.8, 2.5, 8.0])  # the last kernel is wider than the image
def test_the_blur_equals_scipys(sigma: float) -> None:
    images = some_images(2, 20, 14)
    reach = math.ceil(3 * sigma)
    slow = [
        scipy.ndimage.gaussian_filter(
            plane.astype(float), sigma, mode="nearest", truncate=reach / sigma
        )
        for plane in planes(images)
    ]
    fast = restore.gaussian(torch.from_numpy(images), sigma).numpy()
    np.testing.assert_allclose(fast, np.reshape(slow, images.shape), atol=1e-5)


def blurred_along(images: np.ndarray, angle: float, length: int = 6) -> np.ndarray:
    """A straight motion: the mean of the image shifted along a line, to the right and down."""
    steps = np.linspace(-length / 2, length / 2, 4 * length + 1)
    moved = [
        scipy.ndimage.shift(
            images, (0, 0, step * math.sin(angle), step * math.cos(angle)), order=1, mode="wrap"
        )
        for step in steps
    ]
    return np.mean(moved, axis=0).astype(np.float32)


# the second kernel is wide enough for the Fourier transform
@pytest.mark.parametrize("sigma", [2.0, 5.0])
@pytest.mark.parametrize("direction", range(restore.ANGLES))
def test_each_image_is_blurred_along_the_direction_of_its_own_motion(
    direction: int, sigma: float
) -> None:
    angle = math.pi * direction / restore.ANGLES
    across = angle + math.pi / 2
    # smoothed, as pictures are: differences of neighbouring pixels of noise favour the diagonals
    still = scipy.ndimage.gaussian_filter(some_images(1, 64, 64), (0, 0, 1, 1), mode="wrap")
    images = torch.from_numpy(
        np.concatenate([blurred_along(still, angle), blurred_along(still, across)])
    )
    (blurred,) = restore.blurred_along_own_motion(images, (sigma,))
    kernels = restore.line_kernels(sigma)
    wide = functional.pad(images, (kernels.shape[-1] // 2,) * 4, mode="replicate")
    for image, padded, expected in zip(
        blurred, wide, (direction, (direction + 4) % 8), strict=True
    ):
        every = functional.conv2d(padded[:, None], kernels[:, None]).transpose(0, 1)
        errors = (every - image).abs().amax((1, 2, 3))
        assert int(errors.argmin()) == expected and errors[expected] < 1e-6


def test_the_exported_form_equals_the_form_that_runs_here(monkeypatch) -> None:
    images = torch.from_numpy(
        np.concatenate(
            [
                blurred_along(some_images(1, 16, 20, seed), angle)
                for seed, angle in enumerate((0.1, 1.0, 2.2))
            ]
        )
    )

    def versions() -> list[torch.Tensor]:
        shrunk = restore.cosine_shrinkage(images, (0.1,)) + restore.cosine_shrinkage(
            images, (0.3,), 8, 3
        )
        return shrunk + restore.blurred_along_own_motion(images, (1.5, 4.0))

    plain = versions()
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    for here, exported in zip(plain, versions(), strict=True):
        np.testing.assert_allclose(exported.numpy(), here.numpy(), atol=1e-6)


@pytest.mark.parametrize("sigma", [1.5, 2.5, 6.6])
def test_line_kernels_average_along_their_line(sigma: float) -> None:
    kernels = restore.line_kernels(sigma).numpy()
    np.testing.assert_allclose(kernels.sum(axis=(1, 2)), 1, atol=1e-5)
    steps = np.arange(kernels.shape[-1]) - kernels.shape[-1] // 2
    across = (kernels[0] * steps[None, :] ** 2).sum()
    down = (kernels[0] * steps[:, None] ** 2).sum()
    assert across > 4 * down  # direction 0 is horizontal
    np.testing.assert_allclose(kernels[4], kernels[0].T, atol=1e-6)  # direction 4 is vertical


def test_the_noise_level_is_measured_on_flat_and_sloping_images_and_hardly_by_edges() -> None:
    random = np.random.default_rng(0)
    slope = np.broadcast_to(np.linspace(0.2, 0.8, 32, dtype=np.float32), (3, 3, 32, 32))
    amounts = np.array([0.0, 0.05, 0.2], np.float32)
    noisy = slope + amounts[:, None, None, None] * random.standard_normal(slope.shape)
    noisy[:, :, 10] += 0.5  # a line: less than half of the pixels
    measured = restore.noise_level(torch.from_numpy(noisy.astype(np.float32)))
    np.testing.assert_allclose(measured.numpy(), amounts, rtol=0.12, atol=1e-5)


def test_a_threshold_of_each_image_is_that_of_the_image_alone() -> None:
    images = torch.from_numpy(some_images(2, 12, 12))
    (both,) = restore.cosine_shrinkage(images, (torch.tensor([0.2, 0.7]),))
    for index, threshold in enumerate((0.2, 0.7)):
        (alone,) = restore.cosine_shrinkage(images[index : index + 1], (threshold,))
        torch.testing.assert_close(both[index : index + 1], alone)


@pytest.mark.parametrize("shape", [(8, 8), (9, 7), (4, 5)])
def test_halved_and_enlarged_images_have_their_size_and_mean(shape: tuple[int, int]) -> None:
    images = torch.from_numpy(some_images(2, *shape))
    large = restore.enlarged(restore.halved(images), images)
    assert large.shape == images.shape
    flat = torch.full_like(images, 0.3)
    torch.testing.assert_close(restore.enlarged(restore.halved(flat), flat), flat)

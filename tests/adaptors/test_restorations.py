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


def slow_non_local_means(image: np.ndarray, strength: float, reach: int = 3) -> np.ndarray:
    """Pixel by pixel, as the definition says."""
    _, height, width = image.shape
    wide = np.pad(image, ((0, 0), (reach, reach), (reach, reach)), mode="reflect")
    reflected_row = np.pad(np.arange(height), 1, mode="reflect")
    reflected_column = np.pad(np.arange(width), 1, mode="reflect")
    result = np.zeros_like(image)
    for y in range(height):
        for x in range(width):
            total = np.zeros(3)
            weights = 0.0
            for down in range(-reach, reach + 1):
                for right in range(-reach, reach + 1):
                    distance = 0.0
                    for row in reflected_row[y : y + 3]:
                        for column in reflected_column[x : x + 3]:
                            other = wide[:, reach + row + down, reach + column + right]
                            distance += float(np.mean((image[:, row, column] - other) ** 2)) / 9
                    weight = math.exp(-distance / strength**2)
                    total += weight * wide[:, reach + y + down, reach + x + right]
                    weights += weight
            result[:, y, x] = total / weights
    return result


def test_non_local_means_equals_its_definition() -> None:
    (image,) = images = some_images(1, 6, 5)
    for strength, fast in zip(
        (0.1, 0.4), restore.non_local_means(torch.from_numpy(images), (0.1, 0.4)), strict=True
    ):
        np.testing.assert_allclose(
            fast[0].numpy(), slow_non_local_means(image, strength), atol=1e-5
        )


def test_non_local_means_removes_noise_from_a_flat_image_and_keeps_an_edge() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    (restored,) = restore.non_local_means(torch.from_numpy(0.5 + noise), (0.18,))
    assert restored.std() < 0.25 * noise.std()
    edge = np.zeros((1, 3, 16, 16), np.float32)
    edge[:, :, :, 8:] = 1
    (kept,) = restore.non_local_means(torch.from_numpy(edge), (0.18,))
    assert np.abs(kept.numpy() - edge).max() < 0.01


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

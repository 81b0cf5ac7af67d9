"""Restored versions of an image. They need no query: each is computed once, then only mixed.

Everything here is plain tensor arithmetic without loops over images, so that it can be exported to
ONNX. Images are tensors of shape (n, 3, height, width).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

# A sorting network for nine values that moves their median to index 4. Each pair is ordered so that
# the smaller value goes to the first index.
MEDIAN_OF_NINE = (
    *((1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8)),
    *((0, 3), (5, 8), (4, 7), (3, 6), (1, 4), (2, 5), (4, 7), (4, 2), (6, 4), (4, 2)),
)
ANGLES = 8  # directions in which a motion may have blurred an image
SLIM = 0.45  # standard deviation of a line kernel across its line, in pixels
NORMAL_QUARTILE = 0.6745  # the median size of normal noise of deviation 1
MOST_REACH = 8  # pixels; for wider kernels the Fourier transform is twenty times as fast


def padded(images: Tensor, margin: int) -> Tensor:
    """The images with a reflected border of `margin` pixels."""
    return F.pad(images, (margin, margin, margin, margin), mode="reflect")


def shifted(images: Tensor, margin: int, down: int, right: int, like: Tensor) -> Tensor:
    """Padded images shifted by some pixels, cut to the height and width of `like`."""
    height, width = like.shape[-2:]
    return images[
        ..., margin + down : margin + down + height, margin + right : margin + right + width
    ]


def along_line(wide: Tensor, line: list[float], axis: int) -> Tensor:
    """A weighted sum of neighbours along an axis, which loses the margin it was padded with."""
    length = wide.shape[axis] - len(line) + 1
    total = wide.narrow(axis, 0, length) * line[0]
    for offset, weight in enumerate(line[1:], start=1):
        total = total.add_(wide.narrow(axis, offset, length), alpha=weight)
    return total


def median(images: Tensor) -> Tensor:
    """The median of each pixel and its eight neighbours; removes single wrong pixels, keeps edges.

    >>> image = torch.zeros(1, 3, 5, 5)
    >>> image[:, :, 2, 2] = 1
    >>> float(median(image).max())
    0.0
    """
    wide = padded(images, 1)
    values = [shifted(wide, 1, down, right, images) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    for low, high in MEDIAN_OF_NINE:
        smaller = torch.minimum(values[low], values[high])
        values[high] = torch.maximum(values[low], values[high])
        values[low] = smaller
    return values[4]


def cosine_shrinkage(
    images: Tensor, thresholds: tuple[float | Tensor, ...], size: int = 4, stride: int = 1
) -> list[Tensor]:
    """Drop small coefficients of the cosine transform of every block; average overlapping blocks.

    Blocks with few remaining coefficients have more weight: they are the smooth ones, where noise
    shows. Colours are first converted to brightness and two differences. Noise is uncorrelated in
    them; pictures are not.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)
    thresholds : tuple of float, or of tensors of shape (n,)
        Coefficients up to this size are dropped, in the pixel range [0, 1].
    size : int, default 4
        Side of a block, in pixels.
    stride : int, default 1
        Distance between neighbouring blocks, in pixels.

    Returns
    -------
    list of tensors, one per threshold
    """
    index = torch.arange(size, dtype=torch.float32)
    basis = torch.cos(math.pi * (index[None] + 0.5) * index[:, None] / size) * math.sqrt(2 / size)
    basis[0] /= math.sqrt(2)
    waves = torch.einsum("ai,bj->abij", basis, basis).reshape(size * size, 1, size, size)
    axes = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
    axes = axes / axes.norm(dim=1, keepdim=True)
    count, channels, height, width = images.shape
    margin = size - 1
    planes = padded(F.conv2d(images, axes[:, :, None, None]), margin)
    planes = planes.reshape(count * channels, 1, height + 2 * margin, width + 2 * margin)
    coefficients = F.conv2d(planes, waves, stride=stride)
    results = []
    for threshold in thresholds:
        limit = threshold
        if isinstance(threshold, Tensor):
            limit = threshold.repeat_interleave(channels)[:, None, None, None]
        kept = (coefficients.abs() > limit).to(images.dtype)
        kept[:, :1] = 1  # the mean of a block is never dropped
        weight = 1 / kept.sum(1, keepdim=True)
        total = F.conv_transpose2d(weight, torch.ones(1, 1, size, size), stride=stride)
        blocks = _sum_of_blocks(coefficients * kept * weight, waves, stride, total.shape[-2:])
        inside = (..., slice(margin, margin + height), slice(margin, margin + width))
        restored = (blocks[inside] / total[inside]).reshape(count, channels, height, width)
        results.append(F.conv2d(restored, axes.T[:, :, None, None]))
    return results


def halved(images: Tensor) -> Tensor:
    """The images at half their size; of an odd side, the last pixel counts alone."""
    return F.avg_pool2d(images, 2, ceil_mode=True, count_include_pad=False)


def enlarged(images: Tensor, like: Tensor) -> Tensor:
    """Halved images at the size of `like` again, which they were made from."""
    large = F.interpolate(images, scale_factor=2.0, mode="bilinear", align_corners=False)
    return large[..., : like.shape[-2], : like.shape[-1]]


def noise_level(images: Tensor) -> Tensor:
    """The standard deviation of the noise of each image, from its finest details.

    The mask ignores constant and linear changes of brightness. The median of its responses ignores
    edges, as long as they are on fewer than half of the pixels.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)

    Returns
    -------
    tensor of shape (n,), in the pixel range [0, 1]
    """
    mask = torch.tensor([[1.0, -2.0, 1.0], [-2.0, 4.0, -2.0], [1.0, -2.0, 1.0]]) / 6
    details = F.conv2d(images, mask.repeat(3, 1, 1, 1), groups=3).abs().flatten(2)
    return _median_of_last(details).mean(1) / NORMAL_QUARTILE


def _median_of_last(values: Tensor) -> Tensor:
    """The lower median along the last axis; ONNX has no median, and sorting takes longer."""
    if torch.onnx.is_in_onnx_export():
        middle = (values.shape[-1] - 1) // 2
        return values.sort(-1).values[..., middle]
    return values.median(-1).values


def _sum_of_blocks(
    coefficients: Tensor, waves: Tensor, stride: int, extent: tuple[int, ...]
) -> Tensor:
    """A transposed convolution in a third of its time: overlapping blocks, each a sum of waves."""
    if torch.onnx.is_in_onnx_export():  # it supports fold only from opset 18 on
        return F.conv_transpose2d(coefficients, waves, stride=stride)
    return F.fold(
        waves.flatten(1).T @ coefficients.flatten(2), extent, waves.shape[-2:], stride=stride
    )


def gaussian(images: Tensor, sigma: float) -> Tensor:
    """A Gaussian blur.

    The border is repeated outwards, so an image may be smaller than the kernel.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)
    sigma : float
        Radius (standard deviation), in pixels.
    """
    reach = math.ceil(3 * sigma)
    steps = torch.arange(-reach, reach + 1, dtype=torch.float32)
    kernel = torch.exp(-steps.square() / (2 * sigma**2))
    kernel = kernel / kernel.sum()
    wide = F.pad(images, (reach, reach, reach, reach), mode="replicate")
    across = F.conv2d(wide, kernel.view(1, 1, 1, -1).repeat(3, 1, 1, 1), groups=3)
    return F.conv2d(across, kernel.view(1, 1, -1, 1).repeat(3, 1, 1, 1), groups=3)


def blurred_along_own_motion(images: Tensor, sigmas: tuple[float, ...]) -> list[Tensor]:
    """Blur each image further along its own motion: where its brightness varies least.

    What this blur removes, the motion has partly removed already. The bank adds it back.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)
    sigmas : tuple of float
        Radii (standard deviations) along the motion, in pixels.

    Returns
    -------
    list of tensors, one per radius
    """
    grey = images.mean(1, keepdim=True)
    across = (grey[:, :, 1:-1, 2:] - grey[:, :, 1:-1, :-2]) / 2
    down = (grey[:, :, 2:, 1:-1] - grey[:, :, :-2, 1:-1]) / 2
    angles = math.pi * torch.arange(ANGLES, dtype=torch.float32) / ANGLES
    # the energy of the derivative along each angle, from the structure tensor
    xx, xy, yy = (
        product.mean((1, 2, 3))[:, None]
        for product in (across * across, across * down, down * down)
    )
    energy = xx * angles.cos() ** 2 + 2 * xy * angles.cos() * angles.sin() + yy * angles.sin() ** 2
    chosen = F.one_hot(energy.argmin(1), ANGLES).to(images.dtype)
    return [_with_own_kernel(images, line_kernels(sigma), chosen) for sigma in sigmas]


def _with_own_kernel(images: Tensor, kernels: Tensor, chosen: Tensor) -> Tensor:
    """Filter each image with its own kernel, which its row of `chosen` selects."""
    reach = kernels.shape[-1] // 2
    height, width = images.shape[-2:]
    wide = F.pad(images, (reach,) * 4, mode="replicate")
    if torch.onnx.is_in_onnx_export():
        # there a kernel must be constant: blur in every direction, then choose
        every = F.conv2d(wide, kernels[:, None].repeat(3, 1, 1, 1), groups=3)
        every = every.reshape(-1, 3, ANGLES, *every.shape[2:])
        return (every * chosen[:, None, :, None, None]).sum(2)
    own = torch.einsum("na,ayx->nyx", chosen, kernels)[:, None]
    if reach <= MOST_REACH:
        return F.conv2d(wide.transpose(0, 1), own, groups=len(images)).transpose(0, 1)
    # The kernels are symmetric, so a product of spectra equals a convolution layer. Multiples of 16
    # are faster.
    extent = [-(-size // 16) * 16 for size in wide.shape[-2:]]
    blurred: Tensor = torch.fft.irfft2(
        torch.fft.rfft2(wide, s=extent) * torch.fft.rfft2(own, s=extent), s=extent
    )
    return blurred[..., 2 * reach : 2 * reach + height, 2 * reach : 2 * reach + width]


def line_kernels(sigma: float) -> Tensor:
    """Slim Gaussians of radius `sigma` in every direction: (ANGLES, size, size)."""
    reach = math.ceil(2.5 * sigma)
    steps = torch.arange(-reach, reach + 1, dtype=torch.float32)
    angles = (math.pi * torch.arange(ANGLES, dtype=torch.float32) / ANGLES)[:, None, None]
    along = steps[None, None, :] * angles.cos() + steps[None, :, None] * angles.sin()
    across = steps[None, :, None] * angles.cos() - steps[None, None, :] * angles.sin()
    kernels = torch.exp(-along.square() / (2 * sigma**2) - across.square() / (2 * SLIM**2))
    return kernels / kernels.sum((1, 2), keepdim=True)

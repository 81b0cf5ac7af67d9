"""Restored versions of an image that need no query: each is computed once, a candidate of the bank only mixes them.

Everything here is plain tensor arithmetic without loops over images, so that it can be exported to ONNX as it stands.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

# A sorting network for nine values that leaves their median in place 4 (each pair: smaller to the first place).
MEDIAN_OF_NINE = (
    *((1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8)),
    *((0, 3), (5, 8), (4, 7), (3, 6), (1, 4), (2, 5), (4, 7), (4, 2), (6, 4), (4, 2)),
)
ANGLES = 8  # directions in which a motion may have blurred an image
SLIM = 0.45  # deviation in pixels of a line kernel across its line
MOST_REACH = 8  # of a kernel, in pixels: wider ones go through the Fourier transform, which is twenty times as fast


def padded(images: Tensor, margin: int) -> Tensor:
    return F.pad(images, (margin, margin, margin, margin), mode="reflect")


def shifted(images: Tensor, margin: int, down: int, right: int, like: Tensor) -> Tensor:
    """A padded image moved by so many pixels, in the size of the unpadded one."""
    height, width = like.shape[-2:]
    return images[
        ..., margin + down : margin + down + height, margin + right : margin + right + width
    ]


def along_line(wide: Tensor, line: list[float], axis: int) -> Tensor:
    """A weighted sum of neighbours along an axis, which gets shorter by the margin it was padded with."""
    length = wide.shape[axis] - len(line) + 1
    total = wide.narrow(axis, 0, length) * line[0]
    for place, weight in enumerate(line[1:], start=1):
        total = total.add_(wide.narrow(axis, place, length), alpha=weight)
    return total


def median(images: Tensor) -> Tensor:
    """The median of each pixel and its eight neighbours: removes single wrong pixels, keeps edges."""
    wide = padded(images, 1)
    values = [shifted(wide, 1, down, right, images) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    for low, high in MEDIAN_OF_NINE:
        values[low], values[high] = (
            torch.minimum(values[low], values[high]),
            torch.maximum(values[low], values[high]),
        )
    return values[4]


def non_local_means(images: Tensor, strengths: tuple[float, ...], reach: int = 3) -> list[Tensor]:
    """Each pixel becomes the mean of those around it whose 3 x 3 neighbourhoods look alike; one result a strength."""
    wide = padded(images, reach)
    sums, weights = [images] * len(strengths), [torch.ones_like(images[:, :1])] * len(strengths)
    steps = [
        (down, right) for down in range(-reach, reach + 1) for right in range(-reach, reach + 1)
    ]
    for down, right in steps:
        if (down, right) == (0, 0):
            continue
        other = shifted(wide, reach, down, right, images)
        distance = F.avg_pool2d(padded((images - other).square().mean(1, keepdim=True), 1), 3, 1)
        for index, strength in enumerate(strengths):
            weight = torch.exp(distance * (-1 / strength**2))
            sums[index] = torch.addcmul(sums[index], weight, other)
            weights[index] = weights[index] + weight
    return [total / weight for total, weight in zip(sums, weights, strict=True)]


def cosine_shrinkage(
    images: Tensor, thresholds: tuple[float, ...], size: int = 4, stride: int = 1
) -> list[Tensor]:
    """Drop small coefficients of the cosine transform of every size x size block, overlapping ones averaged.

    Blocks with few coefficients left weigh more: they are the smooth ones, where noise shows. Colours are first
    turned into brightness and two differences, which noise does not correlate and pictures do.
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
        kept = (coefficients.abs() > threshold).to(images.dtype)
        kept[:, :1] = 1  # never the mean of a block
        weight = 1 / kept.sum(1, keepdim=True)
        total = F.conv_transpose2d(weight, torch.ones(1, 1, size, size), stride=stride)
        blocks = added_up(coefficients * kept * weight, waves, stride, total.shape[-2:])
        inside = (..., slice(margin, margin + height), slice(margin, margin + width))
        restored = (blocks[inside] / total[inside]).reshape(count, channels, height, width)
        results.append(F.conv2d(restored, axes.T[:, :, None, None]))
    return results


def added_up(coefficients: Tensor, waves: Tensor, stride: int, extent: tuple[int, ...]) -> Tensor:
    """The sum of overlapping blocks, each a sum of waves: a transposed convolution, in a third of its time."""
    if torch.onnx.is_in_onnx_export():  # which knows no fold before opset 18
        return F.conv_transpose2d(coefficients, waves, stride=stride)
    return F.fold(
        waves.flatten(1).T @ coefficients.flatten(2), extent, waves.shape[-2:], stride=stride
    )


def gaussian(images: Tensor, sigma: float) -> Tensor:
    """A Gaussian blur; beyond its border an image goes on as it ends, so that it may be smaller than the kernel."""
    reach = math.ceil(3 * sigma)
    steps = torch.arange(-reach, reach + 1, dtype=torch.float32)
    kernel = torch.exp(-steps.square() / (2 * sigma**2))
    kernel = kernel / kernel.sum()
    wide = F.pad(images, (reach, reach, reach, reach), mode="replicate")
    across = F.conv2d(wide, kernel.view(1, 1, 1, -1).repeat(3, 1, 1, 1), groups=3)
    return F.conv2d(across, kernel.view(1, 1, -1, 1).repeat(3, 1, 1, 1), groups=3)


def blurred_along_own_motion(images: Tensor, sigmas: tuple[float, ...]) -> list[Tensor]:
    """Further blurs along the direction in which an image looks blurred: where its brightness varies least.

    What these take away is what a motion has taken away in part: the bank adds it back.
    """
    grey = images.mean(1, keepdim=True)
    across = (grey[:, :, 1:-1, 2:] - grey[:, :, 1:-1, :-2]) / 2
    down = (grey[:, :, 2:, 1:-1] - grey[:, :, :-2, 1:-1]) / 2
    angles = math.pi * torch.arange(ANGLES, dtype=torch.float32) / ANGLES
    # the energy of the derivative along an angle, from the structure tensor
    xx, xy, yy = (
        part.mean((1, 2, 3))[:, None] for part in (across * across, across * down, down * down)
    )
    energy = xx * angles.cos() ** 2 + 2 * xy * angles.cos() * angles.sin() + yy * angles.sin() ** 2
    chosen = F.one_hot(energy.argmin(1), ANGLES).to(images.dtype)
    return [through_own_kernel(images, line_kernels(sigma), chosen) for sigma in sigmas]


def through_own_kernel(images: Tensor, kernels: Tensor, chosen: Tensor) -> Tensor:
    """Each image through the kernel its row of `chosen` points at."""
    reach, (height, width) = kernels.shape[-1] // 2, images.shape[-2:]
    wide = F.pad(images, (reach,) * 4, mode="replicate")
    if (
        torch.onnx.is_in_onnx_export()
    ):  # there a kernel must be a constant: blur in every direction, then choose
        every = F.conv2d(wide, kernels[:, None].repeat(3, 1, 1, 1), groups=3)
        every = every.reshape(-1, 3, ANGLES, *every.shape[2:])
        return (every * chosen[:, None, :, None, None]).sum(2)
    own = torch.einsum("na,ayx->nyx", chosen, kernels)[:, None]
    if reach <= MOST_REACH:
        return F.conv2d(wide.transpose(0, 1), own, groups=len(images)).transpose(0, 1)
    # The kernels are symmetric, so a product of spectra is what a convolution layer does. Round extents are faster.
    extent = [-(-size // 16) * 16 for size in wide.shape[-2:]]
    blurred: Tensor = torch.fft.irfft2(
        torch.fft.rfft2(wide, s=extent) * torch.fft.rfft2(own, s=extent), s=extent
    )
    return blurred[..., 2 * reach : 2 * reach + height, 2 * reach : 2 * reach + width]


def line_kernels(sigma: float) -> Tensor:
    """Slim Gaussians in every direction: (ANGLES, size, size)."""
    reach = math.ceil(2.5 * sigma)
    steps = torch.arange(-reach, reach + 1, dtype=torch.float32)
    angles = (math.pi * torch.arange(ANGLES, dtype=torch.float32) / ANGLES)[:, None, None]
    along = steps[None, None, :] * angles.cos() + steps[None, :, None] * angles.sin()
    beside = steps[None, :, None] * angles.cos() - steps[None, None, :] * angles.sin()
    kernels = torch.exp(-along.square() / (2 * sigma**2) - beside.square() / (2 * SLIM**2))
    return kernels / kernels.sum((1, 2), keepdim=True)

"""How the restoration bank changes an image: mix restored versions, filter, then set the tone.

Everything here is tensor arithmetic, so that it has gradients and can be exported to ONNX.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from soda_tta.adaptors import repairs
from soda_tta.adaptors import restorations as restore
from soda_tta.adaptors.deblurring import deblurred
from soda_tta.adaptors.parts import KERNELS, MIXED, PARTS
from soda_tta.adaptors.zooming import zoomed

COARSE = 2  # from this grain on: larger blocks, fewer neighbours, because each costs more there
SMALLEST_SHRUNK = 4  # pixels per side that shrinkage needs
KERNEL = 7  # pixels; a wider kernel would hardly differ from the wide blurs among the versions
SPREAD = 0.25  # standard deviation of the pixels of ordinary photographs ...
MIDDLE = 0.47  # ... and their mean
FLAT = 0.02  # added to the deviation of an image, so that an empty image is not amplified
ALL_USED = (True,) * len(MIXED)
INDEX = {part.name: index for index, part in enumerate(PARTS)}


def scaled(strengths: tuple[float, ...], grain: float) -> tuple[float, ...]:
    """Strengths for images of this grain."""
    return tuple(grain * strength for strength in strengths)


def _wrong_pixels(images: Tensor, strengths: tuple[float, ...], grain: float) -> list[Tensor]:
    return [repairs.without_wrong_pixels(images)]


def _coarse_pixels(images: Tensor, strengths: tuple[float, ...], grain: float) -> list[Tensor]:
    return [repairs.without_coarse_pixels(images)]


def _median(images: Tensor, strengths: tuple[float, ...], grain: float) -> list[Tensor]:
    return [restore.median(images)]


def _cosine_shrinkage(images: Tensor, strengths: tuple[float, ...], grain: float) -> list[Tensor]:
    return restore.cosine_shrinkage(images, scaled(strengths, grain), *_blocks(images, grain))


def _adaptive_shrinkage(images: Tensor, strengths: tuple[float, ...], grain: float) -> list[Tensor]:
    noise = restore.noise_level(images)
    thresholds = tuple(strength * noise for strength in strengths)
    return restore.cosine_shrinkage(images, thresholds, *_blocks(images, grain))


def _coarse_shrinkage(images: Tensor, strengths: tuple[float, ...], grain: float) -> list[Tensor]:
    """Shrinkage at half the size, where coarse details are and the noise is half as strong."""
    if min(images.shape[2:]) < 2 * SMALLEST_SHRUNK:
        return [images] * len(strengths)
    small = restore.halved(images)
    shrunk = restore.cosine_shrinkage(small, scaled(strengths, grain), *_blocks(small, grain))
    return [restore.enlarged(each, images) for each in shrunk]


def _blocks(images: Tensor, grain: float) -> tuple[int, int]:
    """Side of the blocks of the cosine transform, and distance between them."""
    if grain >= COARSE and min(images.shape[2:]) >= 8:
        return 8, 3
    return 4, 1


def _motion(images: Tensor, radii: tuple[float, ...], grain: float) -> list[Tensor]:
    return restore.blurred_along_own_motion(images, scaled(radii, grain))


def _inverse(images: Tensor, radii: tuple[float, ...], grain: float) -> list[Tensor]:
    return deblurred(images, scaled(radii, grain))


def _blur(images: Tensor, radii: tuple[float, ...], grain: float) -> list[Tensor]:
    return [restore.gaussian(images, radius) for radius in scaled(radii, grain)]


# The function of each family of versions, from its strengths and the grain; strengths share work.
RESTORATIONS: dict[str, Callable[[Tensor, tuple[float, ...], float], list[Tensor]]] = {
    "wrong pixels": _wrong_pixels,
    "coarse pixels": _coarse_pixels,
    "median": _median,
    "cosine shrinkage": _cosine_shrinkage,
    "adaptive shrinkage": _adaptive_shrinkage,
    "coarse shrinkage": _coarse_shrinkage,
    "motion": _motion,
    "inverse": _inverse,
    "blur": _blur,
}


def with_differences(images: Tensor, grain: float, used: tuple[bool, ...] = ALL_USED) -> Tensor:
    """The images and their differences to every restored version.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)
    grain : float
        See `Bank`.
    used : tuple of bool, one per part of `MIXED`
        Versions that are not used are not computed; their difference is zero.

    Returns
    -------
    tensor of shape (n, 1 + versions, 3, height, width)
    """
    versions: dict[str, Tensor] = {}
    needed = [part for part, is_used in zip(MIXED, used, strict=True) if is_used]
    for family, restoration in RESTORATIONS.items():
        parts = [part for part in needed if part.family == family]
        if parts:
            restored = restoration(images, tuple(part.strength for part in parts), grain)
            versions.update(zip((part.name for part in parts), restored, strict=True))
    zero = torch.zeros_like(images)
    differences = (
        versions[part.name] - images if part.name in versions else zero for part in MIXED
    )
    return torch.stack([images, *differences], dim=1)


def adapted(stack: Tensor, theta: Tensor, *, fixed: bool = True) -> Tensor:
    """Mix, smooth or sharpen, set the tone, then zoom.

    Every step adds nothing where its parameter is zero, so zero is the identity to the last bit.

    Parameters
    ----------
    stack : tensor of shape (n, 1 + versions, 3, height, width)
        Images and differences from `with_differences`.
    theta : tensor of shape (len(PARTS),)
        Parameters of the bank.
    fixed : bool, default True
        Skip the steps whose parameter is zero, which saves most of the time of a search. False
        keeps them, for gradients.

    Returns
    -------
    tensor of shape (n, 3, height, width), in [0, 1]
    """
    active = [not fixed or bool(value) for value in theta]
    image = stack[:, 0]
    for index in range(len(MIXED)):
        if active[index]:
            image = image + theta[index] * stack[:, 1 + index]
    kernels = slice(len(MIXED), len(MIXED) + len(KERNELS))
    if any(active[kernels]):
        image = filtered(image, theta[kernels], active[kernels])
    image = _contrasted(image, theta, active)
    if any(active[INDEX[name]] for name in ("brightness", "red", "green", "blue")):
        colours = torch.stack([theta[INDEX[name]] for name in ("red", "green", "blue")])
        shift = theta[INDEX["brightness"]] + colours
        image = image + shift[:, None, None]
    image = image.clamp(0, 1)
    if active[INDEX["gamma"]]:
        image = _curved(image, theta[INDEX["gamma"]], fixed)
    if active[INDEX["zoom"]]:
        image = _enlarged(image, theta[INDEX["zoom"]], fixed)
    return image


def _contrasted(image: Tensor, theta: Tensor, active: list[bool]) -> Tensor:
    """Standard contrast, saturation and contrast, in this order."""
    if active[INDEX["standard contrast"]]:
        mean = image.mean((1, 2, 3), keepdim=True)
        # clamped: the square root has no finite slope at zero
        deviation = (image - mean).square().mean((1, 2, 3), keepdim=True).clamp(min=1e-12).sqrt()
        change = (image - mean) * (SPREAD / (deviation + FLAT) - 1) + (MIDDLE - mean)
        image = image + theta[INDEX["standard contrast"]] * change
    if active[INDEX["saturation"]]:
        factor = theta[INDEX["saturation"]].exp()
        image = image + (factor - 1) * (image - image.mean(1, keepdim=True))
    if active[INDEX["contrast"]]:
        image = image + (theta[INDEX["contrast"]].exp() - 1) * (image - 0.5)
    return image


def _curved(image: Tensor, gamma: Tensor, fixed: bool) -> Tensor:
    """The image to the power exp(gamma)."""
    # the exponential of a logarithm takes half the time of a power
    curved = (image.clamp(min=1e-6).log() * gamma.exp()).exp()
    if fixed:
        return curved
    # at zero the image stays exactly as it is, but has a slope
    return torch.where(gamma == 0, image + (curved - curved.detach()), curved)


def _enlarged(image: Tensor, zoom: Tensor, fixed: bool) -> Tensor:
    """The image enlarged by exp(zoom)."""
    enlarged = zoomed(image, zoom.exp())
    if fixed:
        return enlarged
    return torch.where(zoom == 0, image + (enlarged - enlarged.detach()), enlarged)


def filtered(images: Tensor, weights: Tensor, active: list[bool]) -> Tensor:
    """Apply one radial kernel: a sum of Gaussians and the identity that keeps the mean.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)
    weights : tensor of shape (len(KERNELS),)
        The weight of each Gaussian; positive smooths, negative sharpens.
    active : list of bool
        Gaussians that are not active are skipped.
    """
    lines = gaussian_lines()
    wide = restore.padded(images, KERNEL // 2)
    if (
        torch.onnx.is_in_onnx_export()
    ):  # there one convolution; here a few separable ones are faster
        kernel = torch.einsum("r,ry,rx->yx", weights, lines, lines)
        kernel[KERNEL // 2, KERNEL // 2] += 1 - weights.sum()
        return F.conv2d(wide, kernel.repeat(3, 1, 1, 1), groups=3)
    result = images
    for weight, line, is_active in zip(weights, lines.tolist(), active, strict=True):
        if is_active:
            blurred = restore.along_line(restore.along_line(wide, line, 2), line, 3)
            result = result + weight * (blurred - images)
    return result


def gaussian_lines() -> Tensor:
    """The profile of the Gaussian of each radius of `KERNELS`: (len(KERNELS), KERNEL)."""
    steps = torch.arange(KERNEL, dtype=torch.float32, device="cpu") - KERNEL // 2
    lines = torch.stack([torch.exp(-steps.square() / (2 * part.strength**2)) for part in KERNELS])
    return lines / lines.sum(1, keepdim=True)

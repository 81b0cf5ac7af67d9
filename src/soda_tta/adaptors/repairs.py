"""Repairs: defects that an image shows by itself. Where it does not show them, nothing changes.

As in `restorations.py`, everything is tensor arithmetic without loops over images, for export.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from soda_tta.adaptors.restorations import median, padded

EXTREME = 2 / 255  # this close to black or white, a value may be wrong ...
STANDS_OUT = 0.08  # ... if it differs from the median of its neighbours by more than this
PASSES = 2  # the second one finds wrong pixels whose neighbours were wrong too
REACH = 2  # pixels around a wrong one that tell what it was
NEAR = 0.8  # radius of their weights
STILL = 0.15  # of the usual step: a smaller one from pixel to pixel belongs to one coarse pixel


def without_wrong_pixels(images: Tensor) -> Tensor:
    """Replace values that are black or white and stand out from their neighbours.

    A replaced value is the mean of the right values near it, moved by how much the other colours of
    the pixel differ from theirs.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)

    Examples
    --------
    >>> image = torch.full((1, 3, 6, 6), 0.5)
    >>> image[0, 0, 3, 3] = 1.0
    >>> float((without_wrong_pixels(image) - 0.5).abs().max())
    0.0
    """
    for _ in range(PASSES):
        images = _wrong_values_replaced(images)
    return images


def _wrong_values_replaced(images: Tensor) -> Tensor:
    extreme = (images <= EXTREME) | (images >= 1 - EXTREME)
    middle = median(images)
    wrong = extreme & ((images - middle).abs() > STANDS_OUT)
    right = 1 - wrong.to(images.dtype)
    steps = torch.arange(-REACH, REACH + 1, dtype=images.dtype)
    line = torch.exp(-steps.square() / (2 * NEAR**2))
    kernel = torch.outer(line, line).repeat(3, 1, 1, 1)
    weights = padded(right, REACH)
    total = F.conv2d(weights, kernel, groups=3)
    mean = F.conv2d(padded(images, REACH) * weights, kernel, groups=3) / total.clamp(min=1e-3)
    mean = torch.where(total > 1e-3, mean, middle)
    deviation = (images - mean) * right
    of_others = deviation.sum(1, keepdim=True) - deviation
    others = right.sum(1, keepdim=True) - right
    replacement = (mean + of_others / others.clamp(min=1)).clamp(0, 1)
    return torch.where(wrong, replacement, images)


def without_coarse_pixels(images: Tensor) -> Tensor:
    """Smooth an image that was enlarged by repeating its pixels.

    Rows that hardly differ from the row before are one coarse row, and columns likewise. Between
    the centres of coarse pixels, values are interpolated.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)

    Examples
    --------
    >>> ramp = torch.arange(4.0).repeat_interleave(3).expand(1, 3, 12, 12) / 4
    >>> [round(value, 2) for value in without_coarse_pixels(ramp)[0, 0, 0, 4:8].tolist()]
    [0.25, 0.33, 0.42, 0.5]
    """
    down = interpolation((images[:, :, 1:] - images[:, :, :-1]).abs().mean((1, 3)))
    across = interpolation((images[..., 1:] - images[..., :-1]).abs().mean((1, 2)))
    return down[:, None] @ images @ across.transpose(1, 2)[:, None]


def interpolation(steps: Tensor) -> Tensor:
    """The matrix of a cubic interpolation between the centres of coarse pixels along one axis.

    Parameters
    ----------
    steps : tensor of shape (n, size - 1)
        How much each line of pixels differs from the line before.

    Returns
    -------
    tensor of shape (n, size, size); the identity where no step is small
    """
    begins = (steps > STILL * steps.mean(1, keepdim=True)).to(steps.dtype)
    coarse = F.pad(begins.cumsum(1), (1, 0))  # the number of the coarse pixel of each line
    lines = torch.arange(coarse.shape[1], dtype=steps.dtype)
    own, centre = _coarse_pixel(coarse, coarse)
    side = torch.where(lines < centre, -torch.ones_like(centre), torch.ones_like(centre))
    next_one, next_centre = _coarse_pixel(coarse + side, coarse)
    one_back, _ = _coarse_pixel(coarse - side, coarse)
    second, _ = _coarse_pixel(coarse + 2 * side, coarse)
    distance = (next_centre - centre).abs()
    way = torch.where(distance > 0, (lines - centre).abs() / distance.clamp(min=0.5), 0 * distance)
    weights = [weight[:, :, None] for weight in catmull_rom(way)]
    return sum(
        (
            weight * shares
            for weight, shares in zip(weights, (one_back, own, next_one, second), strict=True)
        ),
        start=torch.zeros_like(own),
    )


def _coarse_pixel(wanted: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor]:
    """The coarse pixel that each line wants, as equal shares of its lines, and its centre."""
    wanted = torch.minimum(wanted.clamp(min=0), coarse[:, -1:])  # the last one at the border
    member = (wanted[:, :, None] == coarse[:, None, :]).to(coarse.dtype)
    shares = member / member.sum(2, keepdim=True)
    return shares, shares @ torch.arange(coarse.shape[1], dtype=coarse.dtype)


def catmull_rom(way: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights of four neighbours in a row, part of the way from the second to the third.

    >>> [round(float(weight), 4) for weight in catmull_rom(torch.tensor(0.5))]
    [-0.0625, 0.5625, 0.5625, -0.0625]
    """
    square = way * way
    cube = square * way
    return (
        (-cube + 2 * square - way) / 2,
        (3 * cube - 5 * square + 2) / 2,
        (-3 * cube + 4 * square + way) / 2,
        (cube - square) / 2,
    )

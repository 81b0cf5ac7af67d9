"""Zoom into an image or out of it, about its centre."""

from __future__ import annotations

import torch
from torch import Tensor


def zoomed(images: Tensor, factor: Tensor) -> Tensor:
    """The images enlarged by a factor, at the same size; below 1 the border is mirrored.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)
    factor : tensor of one value
        1 leaves the images as they are, up to rounding.

    Returns
    -------
    tensor of the same shape

    Examples
    --------
    >>> image = torch.arange(4.0).expand(1, 1, 1, 4)
    >>> zoomed(image, torch.tensor(2.0)).flatten().tolist()
    [0.75, 1.25, 1.75, 2.25]
    """
    down = interpolation(images.shape[-2], factor)
    across = interpolation(images.shape[-1], factor)
    return down @ images @ across.transpose(0, 1)


def interpolation(size: int, factor: Tensor) -> Tensor:
    """What each pixel of a zoomed line takes from each pixel of the line: (size, size)."""
    index = torch.arange(size, dtype=torch.float32, device=factor.device)
    middle = (size - 1) / 2
    positions = (index - middle) / factor + middle
    # beyond a border the line continues as in a mirror
    mirrored = torch.where(positions < -0.5, -1 - positions, positions)
    mirrored = torch.where(mirrored > size - 0.5, 2 * size - 1 - mirrored, mirrored)
    mirrored = mirrored.clamp(min=0, max=size - 1)
    return (1 - (mirrored[:, None] - index[None]).abs()).clamp(min=0)

"""Undo a blur: regularised inverse filters, computed in the cosine transform of the whole image."""

from __future__ import annotations

import math

import torch
from torch import Tensor

REGULARISATION = 0.003  # what is added to the power of the blur; noise and rounding need some


def deblurred(images: Tensor, radii: tuple[float, ...]) -> list[Tensor]:
    """Undo a Gaussian blur of each radius.

    Where an image continues beyond its border as in a mirror, a symmetric blur multiplies each
    coefficient of its cosine transform by a factor h. The filter multiplies it by h / (h^2 + r),
    with the regularisation r: about 1 / h where the blur left something, and 0 where it left only
    noise.

    Parameters
    ----------
    images : tensor of shape (n, 3, height, width)
    radii : tuple of float
        Radii (standard deviations) of the blurs, in pixels.

    Returns
    -------
    list of tensors, one per radius; their values may leave [0, 1]

    Examples
    --------
    >>> flat = torch.full((1, 3, 8, 8), 0.5)
    >>> torch.allclose(deblurred(flat, (1.0,))[0], flat, atol=1e-6)
    True
    """
    down, down_frequencies = cosine_basis(images.shape[-2])
    across, across_frequencies = cosine_basis(images.shape[-1])
    spectrum = down @ images @ across.transpose(0, 1)
    results = []
    for radius in radii:
        blur = remaining(down_frequencies, radius)[:, None] * remaining(across_frequencies, radius)
        # the factor keeps the mean brightness
        gain = (1 + REGULARISATION) * blur / (blur.square() + REGULARISATION)
        results.append(down.transpose(0, 1) @ (spectrum * gain) @ across)
    return results


def cosine_basis(size: int) -> tuple[Tensor, Tensor]:
    """The orthonormal cosine transform along one axis, and its frequencies in cycles per pixel.

    Parameters
    ----------
    size : int
        Pixels along the axis.

    Returns
    -------
    tensor of shape (size, size), one wave per row; tensor of shape (size,)

    Examples
    --------
    >>> basis, frequencies = cosine_basis(4)
    >>> torch.allclose(basis @ basis.T, torch.eye(4), atol=1e-6)
    True
    """
    index = torch.arange(size, dtype=torch.float32)
    frequencies = index / (2 * size)
    waves = torch.cos(2 * math.pi * frequencies[:, None] * (index[None] + 0.5))
    return waves / waves.norm(dim=1, keepdim=True), frequencies


def remaining(frequencies: Tensor, radius: float) -> Tensor:
    """The share of each frequency that a Gaussian blur leaves."""
    return torch.exp(-2 * (math.pi * radius * frequencies).square())

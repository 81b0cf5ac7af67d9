"""Random views of images for training a local network.

Weak views are cropped and flipped. Strong views also change colour and shape and have a hole.
Images are tensors of shape (n, 3, height, width) in [0, 1]; `random` is the random generator.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

CUTOUT = 0.5  # side of the hole, as a share of the image's side
ROUNDS = 2  # operations per strong view


def weak(images: Tensor, random: np.random.Generator) -> Tensor:
    """Pad by an eighth (4 of 32 pixels) with black, crop at random, mirror half of the images."""
    count, _, height, width = images.shape
    pad = max(1, min(height, width) // 8)
    padded = functional.pad(images, (pad, pad, pad, pad))
    rows = torch.from_numpy(random.integers(0, 2 * pad + 1, (count, 1)) + np.arange(height))
    flipped = random.random((count, 1)) < 0.5
    along = np.where(flipped, np.arange(width)[::-1], np.arange(width))
    columns = torch.from_numpy(random.integers(0, 2 * pad + 1, (count, 1)) + along)
    picked = padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2).contiguous()


def strong(images: Tensor, random: np.random.Generator) -> Tensor:
    """A weak view, then two operations of random kind and strength, then a grey hole.

    BETA itself uses AutoAugment here.
    """
    views = weak(images, random)
    for _ in range(ROUNDS):
        kinds = random.integers(0, len(OPERATIONS), len(views))
        strengths = torch.from_numpy(random.uniform(-1, 1, len(views)).astype(np.float32))
        for kind in np.unique(kinds):
            chosen = torch.from_numpy(np.flatnonzero(kinds == kind))
            strength = strengths[chosen].view(-1, 1, 1, 1)
            views[chosen] = OPERATIONS[kind](views[chosen], strength).clamp(0, 1)
    return cutout(views, random)


def cutout(images: Tensor, random: np.random.Generator) -> Tensor:
    """Cover a random square with grey; it may lie partly outside."""
    count, _, height, width = images.shape
    half = CUTOUT * min(height, width) / 2
    middle_row = random.integers(0, height, (count, 1))
    rows = torch.from_numpy(np.abs(np.arange(height) - middle_row) < half)
    middle_column = random.integers(0, width, (count, 1))
    columns = torch.from_numpy(np.abs(np.arange(width) - middle_column) < half)
    hole = rows[:, :, None] & columns[:, None, :]
    return images.masked_fill(hole[:, None], 0.5)


# Each operation takes images and one strength in [-1, 1] per image. The ranges are those of
# RandAugment at magnitude 10 of 30.


def brightness(images: Tensor, strength: Tensor) -> Tensor:
    """Darker or brighter by up to 60 %."""
    return images * (1 + 0.6 * strength)


def contrast(images: Tensor, strength: Tensor) -> Tensor:
    """Lower or higher contrast by up to 60 %."""
    middle = images.mean(dim=(1, 2, 3), keepdim=True)
    return middle + (images - middle) * (1 + 0.6 * strength)


def saturation(images: Tensor, strength: Tensor) -> Tensor:
    """Paler or stronger colours by up to 60 %."""
    grey = images.mean(dim=1, keepdim=True)
    return grey + (images - grey) * (1 + 0.6 * strength)


def sharpness(images: Tensor, strength: Tensor) -> Tensor:
    """Smoother or sharper by up to 60 %."""
    smooth = functional.avg_pool2d(functional.pad(images, (1, 1, 1, 1), mode="replicate"), 3, 1)
    return smooth + (images - smooth) * (1 + 0.6 * strength)


def solarise(images: Tensor, strength: Tensor) -> Tensor:
    """Invert pixels above a threshold of 0.5 or more."""
    return torch.where(images > 1 - 0.5 * strength.abs(), 1 - images, images)


def posterise(images: Tensor, strength: Tensor) -> Tensor:
    """Round to 4 to 8 bits per pixel."""
    levels = 2.0 ** (8 - (4 * strength.abs()).round()) - 1
    return (images * levels).round() / levels


def stretch(images: Tensor, strength: Tensor) -> Tensor:
    """Stretch every channel to its full range; as in RandAugment, `strength` has no effect."""
    low = images.amin(dim=(2, 3), keepdim=True)
    high = images.amax(dim=(2, 3), keepdim=True)
    return (images - low) / (high - low).clamp_min(1e-3)


def rotate(images: Tensor, strength: Tensor) -> Tensor:
    """Rotate by up to 20 degrees."""
    angle = strength.flatten() * (np.pi / 9)
    return warp(images, angle.cos(), -angle.sin(), angle.sin(), angle.cos())


def shear(images: Tensor, strength: Tensor) -> Tensor:
    """Shear horizontally by up to 0.2."""
    one = torch.ones(len(images))
    zero = torch.zeros(len(images))
    return warp(images, one, 0.2 * strength.flatten(), zero, one)


def warp(images: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Apply the linear map (a b; c d) about the centre; grey enters from outside."""
    zero = torch.zeros_like(a)
    matrix = torch.stack([torch.stack([a, b, zero], 1), torch.stack([c, d, zero], 1)], 1)
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images - 0.5, grid, align_corners=False) + 0.5


OPERATIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    *(brightness, contrast, saturation, sharpness, solarise, posterise, stretch),
    *(rotate, shear),
)

"""Random views of images for training a local network: weak (crop, flip) and strong (colour, shape, a hole)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

CUTOUT = 0.5  # side of the hole as a share of the image
ROUNDS = 2  # operations a strong view


def weak(images: Tensor, chance: np.random.Generator) -> Tensor:
    """Pad by an eighth (4 of 32 px) with black, crop at random, mirror every second image."""
    count, _, height, width = images.shape
    pad = max(1, min(height, width) // 8)
    padded = functional.pad(images, (pad, pad, pad, pad))
    rows = torch.from_numpy(chance.integers(0, 2 * pad + 1, (count, 1)) + np.arange(height))
    flipped = chance.random((count, 1)) < 0.5
    along = np.where(flipped, np.arange(width)[::-1], np.arange(width))
    columns = torch.from_numpy(chance.integers(0, 2 * pad + 1, (count, 1)) + along)
    picked = padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2).contiguous()


def strong(images: Tensor, chance: np.random.Generator) -> Tensor:
    """A weak view, then two operations of random kind and strength, then a grey hole; BETA's own are AutoAugment's."""
    views = weak(images, chance)
    for _ in range(ROUNDS):
        kinds = chance.integers(0, len(OPERATIONS), len(views))
        strengths = torch.from_numpy(chance.uniform(-1, 1, len(views)).astype(np.float32))
        for kind in np.unique(kinds):
            chosen = torch.from_numpy(np.flatnonzero(kinds == kind))
            views[chosen] = OPERATIONS[kind](
                views[chosen], strengths[chosen].view(-1, 1, 1, 1)
            ).clamp(0, 1)
    return cutout(views, chance)


def cutout(images: Tensor, chance: np.random.Generator) -> Tensor:
    """A grey square somewhere, partly outside perhaps."""
    count, _, height, width = images.shape
    half = CUTOUT * min(height, width) / 2
    rows = torch.from_numpy(
        np.abs(np.arange(height) - chance.integers(0, height, (count, 1))) < half
    )
    columns = torch.from_numpy(
        np.abs(np.arange(width) - chance.integers(0, width, (count, 1))) < half
    )
    return images.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0.5)


# Each takes images and one strength in [-1, 1] an image; the ranges are those of RandAugment at magnitude 10 of 30.


def brightness(images: Tensor, strength: Tensor) -> Tensor:
    return images * (1 + 0.6 * strength)


def contrast(images: Tensor, strength: Tensor) -> Tensor:
    middle = images.mean(dim=(1, 2, 3), keepdim=True)
    return middle + (images - middle) * (1 + 0.6 * strength)


def saturation(images: Tensor, strength: Tensor) -> Tensor:
    grey = images.mean(dim=1, keepdim=True)
    return grey + (images - grey) * (1 + 0.6 * strength)


def sharpness(images: Tensor, strength: Tensor) -> Tensor:
    smooth = functional.avg_pool2d(functional.pad(images, (1, 1, 1, 1), mode="replicate"), 3, 1)
    return smooth + (images - smooth) * (1 + 0.6 * strength)


def solarise(images: Tensor, strength: Tensor) -> Tensor:
    return torch.where(images > 1 - 0.5 * strength.abs(), 1 - images, images)


def posterise(images: Tensor, strength: Tensor) -> Tensor:
    levels = 2.0 ** (8 - (4 * strength.abs()).round()) - 1
    return (images * levels).round() / levels


def stretch(images: Tensor, strength: Tensor) -> Tensor:
    """Every channel to its full range; as in RandAugment, without a strength."""
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    return (images - low) / (high - low).clamp_min(1e-3)


def rotate(images: Tensor, strength: Tensor) -> Tensor:
    angle = strength.flatten() * (np.pi / 9)
    return warp(images, angle.cos(), -angle.sin(), angle.sin(), angle.cos())


def shear(images: Tensor, strength: Tensor) -> Tensor:
    one, none = torch.ones(len(images)), torch.zeros(len(images))
    return warp(images, one, 0.2 * strength.flatten(), none, one)


def warp(images: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """The linear map (a b; c d) about the centre; grey comes in from outside."""
    none = torch.zeros_like(a)
    matrix = torch.stack([torch.stack([a, b, none], 1), torch.stack([c, d, none], 1)], 1)
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images - 0.5, grid, align_corners=False) + 0.5


OPERATIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    *(brightness, contrast, saturation, sharpness, solarise, posterise, stretch),
    *(rotate, shear),
)

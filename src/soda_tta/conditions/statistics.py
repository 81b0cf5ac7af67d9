"""Numbers that tell conditions of images apart, such as noise, blur or haze, not their contents.

They need no query and no label. All of them are differences, means and quantiles of pixels, so that
they can also be computed outside of Python: `measured` is exported to ONNX as it is. There, extents
are tensors, so nothing here branches on them.

An image has the same numbers alone and in a batch, in PyTorch and in ONNX Runtime: means are sums
of integers, whose order does not matter, and the last digits of logarithms are rounded away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from soda_tta.errors import ImageError
from soda_tta.types import Array

LUMA = (0.299, 0.587, 0.114)  # ITU-R 601
TILE = 64  # pixels; of larger images four tiles are enough, in their own resolution
SMALL = 96  # pixels; images up to this size are taken whole
SMALLEST_SIDE = 8  # pixels
FLOOR = 1e-3  # a quarter of an 8-bit step: less is nothing
STRONG, MIDDLE = 0.98, 0.5  # quantiles: the strongest edges, and flat areas
BLOCK = 8  # pixels of a block of JPEG
FLAT = 1 / 510  # neighbours that differ by less have the same byte
CLIPPED = 1 / 255
ONE = 2**40  # 1.0 as an integer
PIECE = 2**18  # pixel values measured at a time: intermediate results stay in the cache

NAMES = (
    *("detail of 1 pixel", "detail of 2 pixels", "detail of 4 pixels", "detail of 8 pixels"),
    *("brightness", "contrast", "saturation"),
    *("noise", "colour noise"),
    *("sharpness", "curvature", "direction"),
    *("darkest", "brightest", "clipped"),
    *("blocks", "flatness"),
)


def statistics(images: Array) -> Array:
    """One row of numbers per image, in the order of `NAMES`.

    Parameters
    ----------
    images : array of shape (n, 3, height, width)
        float32 RGB in [0, 1], at least 8 pixels in each direction.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> smooth = np.full((1, 3, 32, 32), 0.5, np.float32)
    >>> noisy = smooth + 0.1 * random.standard_normal(smooth.shape).astype(np.float32)
    >>> column = NAMES.index("noise")
    >>> bool(statistics(noisy)[0, column] > statistics(smooth)[0, column])
    True
    """
    height, width = images.shape[2:]
    if min(height, width) < SMALLEST_SIDE:
        raise ImageError(
            f"the images are {width}x{height}; conditions are told apart from at least "
            f"{SMALLEST_SIDE} pixels in each direction."
        )
    rows = np.empty((len(images), len(NAMES)))
    step = max(1, PIECE // (3 * min(height, 2 * TILE) * min(width, 2 * TILE)))
    with torch.inference_mode():
        for start in range(0, len(images), step):
            place = slice(start, start + step)
            piece = torch.from_numpy(np.array(images[place], np.float32, order="C"))
            rows[place] = measured(piece).numpy()
    return rows


def measured(images: Tensor) -> Tensor:
    """The same of a tensor: float64 of shape (n, len(NAMES)), in which 24 bits are used."""
    pixels = tiles(images)
    red, green, blue = pixels.unbind(2)
    grey = LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
    brightness = mean(grey)
    centred = grey - brightness.float()[:, None, None, None]
    sharpness, curvature, direction, steps = _edges(grey)
    columns = (
        *_details(grey),
        brightness,
        log_of(mean(centred.square()).sqrt()),
        log_of(mean(pixels.amax(2) - pixels.amin(2))),
        log_of(quantile(_laplacian(grey).abs(), MIDDLE)),
        log_of(quantile(apart(red - blue, 1).abs(), MIDDLE)),
        sharpness,
        curvature,
        direction,
        quantile(grey, 1 - STRONG).double(),
        quantile(grey, STRONG).double(),
        log_of(mean(((pixels <= CLIPPED) | (pixels >= 1 - CLIPPED)).float())),
        _blocks(steps),
        log_of(mean((steps < FLAT).float())),
    )
    return torch.stack(columns, 1).float().double()


def tiles(images: Tensor) -> Tensor:
    """Up to four tiles of each image: a tensor of shape (n, tiles, 3, height, width).

    >>> tiles(torch.zeros(2, 3, 224, 224)).shape, tiles(torch.zeros(2, 3, 32, 32)).shape
    (torch.Size([2, 4, 3, 64, 64]), torch.Size([2, 1, 3, 32, 32]))
    """
    down, right = (_places(side) for side in images.shape[2:])
    cut = images.index_select(2, down.flatten()).index_select(3, right.flatten())
    cut = cut.reshape(-1, 3, *down.shape, *right.shape)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)


def _places(side: int) -> Tensor:
    """The pixels of each tile along one axis: a fifth of the free room from either border."""
    large = 1 * (side > SMALL)  # a tensor if the side is one
    starts = large * (torch.tensor([1, 4]) * (side - TILE) // 5)[: 1 + large]
    return starts[:, None] + torch.arange(side - large * (side - TILE))


def _details(grey: Tensor) -> list[Tensor]:
    """The logarithm of how much a picture loses each time it is halved, four times."""
    found = []
    for _ in range(4):
        height, width = (side // 2 * 2 for side in grey.shape[2:])
        upper, lower = grey[:, :, 0:height:2], grey[:, :, 1:height:2]
        fours = [rows[..., start:width:2] for rows in (upper, lower) for start in (0, 1)]
        half = (fours[0] + fours[1] + fours[2] + fours[3]) / 4
        lost = torch.stack([(each - half).square() for each in fours], 1)
        found.append(log_of(mean(lost).sqrt()))
        grey = half
    return found


def _edges(grey: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sharpness and curvature of the strongest edges, their direction, and all horizontal steps.

    An edge is sharp if neighbours differ nearly as much as pixels three apart, whatever the
    contrast. Curvature grows with noise and sharpening.
    """
    (across, bend_across), (down, bend_down) = (
        _edges_across(lines) for lines in (grey, grey.transpose(2, 3))
    )
    steps = apart(grey, 1).abs()
    return (across + down) / 2, (bend_across + bend_down) / 2, (across - down).abs(), steps


def _edges_across(lines: Tensor) -> tuple[Tensor, Tensor]:
    """Sharpness and curvature along the last axis."""
    differences = (apart(lines, 1), apart(lines, 3), apart(apart(lines, 1), 1))
    one, three, second = (log_of(quantile(each.abs(), STRONG)) for each in differences)
    return one - three, second - one


def apart(lines: Tensor, distance: int) -> Tensor:
    """Differences of pixels that far apart, along the last axis."""
    return lines[..., distance:] - lines[..., :-distance]


def _laplacian(grey: Tensor) -> Tensor:
    around = (
        grey[:, :, 2:, 1:-1] + grey[:, :, :-2, 1:-1] + grey[:, :, 1:-1, 2:] + grey[:, :, 1:-1, :-2]
    )
    return around - 4 * grey[:, :, 1:-1, 1:-1]


def _blocks(steps: Tensor) -> Tensor:
    """How much larger steps are at every eighth column than elsewhere, at the best phase."""
    columns = (steps * ONE).long().sum((1, 2))
    phases = torch.arange(columns.shape[1]) % BLOCK == torch.arange(BLOCK)[:, None]
    counts = phases.long().sum(1)
    sums = (columns[:, None] * phases).sum(2)
    values = steps.shape[1] * steps.shape[2] * counts.clamp(min=1)
    means = sums.double() / ONE / values
    return log_of(means.amax(1)) - log_of(means.sum(1) / (counts > 0).sum())


def log_of(values: Tensor) -> Tensor:
    """The logarithm, with a floor below which nothing can be seen."""
    return torch.log(values.double() + FLOOR)


def mean(values: Tensor) -> Tensor:
    """The mean of each image; 0 of no values.

    >>> mean(torch.tensor([[0.25, 0.75], [0.0, 0.5]]))
    tensor([0.5000, 0.2500], dtype=torch.float64)
    """
    flat = values.flatten(1)
    count = flat.shape[1]
    return (flat * ONE).long().sum(1).double() / ONE / (count + (count == 0))


def quantile(values: Tensor, share: float) -> Tensor:
    """The value of each image below which this share of its values lies (no interpolation).

    >>> quantile(torch.arange(10.0).reshape(1, 10), 0.5)
    tensor([4.])
    """
    flat = values.flatten(1)
    last: Any = flat.shape[1] - 1
    if not torch.onnx.is_in_onnx_export():
        index = round(share * last)
        return torch.from_numpy(np.partition(flat.detach().numpy(), index, axis=1)[:, index])
    # the last of the smallest or of the largest values, whichever are fewer
    place: Any = (torch.as_tensor(last).double() * share).round().long()
    if share < MIDDLE:
        return flat.topk(place + 1, dim=1, largest=False, sorted=False).values.amax(1)
    return flat.topk(last + 1 - place, dim=1, sorted=False).values.amin(1)

"""The restoration bank: a few readable numbers decide how restored versions of an image are mixed and toned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from soda_tta.adaptors import restorations as restore
from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.adaptors.parts import KERNELS, MIXED, PARTS, in_words, units
from soda_tta.errors import ImageError, MethodError
from soda_tta.types import Array

# What each family of versions is made by, from its strengths and the grain; several strengths share their work.
RESTORATIONS: dict[str, Callable[[Tensor, tuple[float, ...], float], list[Tensor]]] = {
    "median": lambda images, strengths, grain: [restore.median(images)],
    "non-local means": lambda images, strengths, grain: restore.non_local_means(
        images, strengths, reach=2 if grain >= COARSE else 3
    ),
    "cosine shrinkage": lambda images, strengths, grain: restore.cosine_shrinkage(
        images,
        scaled(strengths, grain),
        *((8, 3) if grain >= COARSE and min(images.shape[2:]) >= 8 else (4, 1)),
    ),
    "motion": lambda images, radii, grain: restore.blurred_along_own_motion(
        images, scaled(radii, grain)
    ),
    "blur": lambda images, radii, grain: [
        restore.gaussian(images, radius) for radius in scaled(radii, grain)
    ],
}
NAMES = [part.name for part in PARTS]
COARSE = 2  # the grain from which larger blocks are shrunk, and fewer neighbours are searched: there each costs more
KERNEL = 7  # pixels; a wider kernel would hardly differ from the wide blurs among the versions
SPREAD, MIDDLE = 0.25, 0.47  # deviation and mean of the pixels of ordinary photographs
FLAT = 0.02  # added to an image's deviation, so that an empty image is not blown up
SMALLEST = 4  # pixels a side: the reflections at the border need that much
PIECE = 2**16  # pixel values restored at once: what lies between stays in the cache


@dataclass(frozen=True, kw_only=True)
class Bank:
    """The structure of the bank. Zero is the identity, so it has no random start.

    `grain` multiplies the radii of wide blurs and of motions and the thresholds of shrinkage: 1 for images of 32
    pixels, more for larger ones, where the same scene spreads over more pixels.
    """

    grain: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.grain <= 16:
            raise MethodError(f"a bank has a grain above 0 and up to 16, not {self.grain}.")

    @staticmethod
    def for_size(size: tuple[int, ...]) -> Bank:
        """The bank for images whose last two extents are height and width."""
        return Bank(grain=round(max(1.0, (min(size[-2:]) / 32) ** 0.5), 2))

    def build(self, seed: int = 0) -> BankAdaptor:
        return BankAdaptor(self, np.zeros(len(PARTS), np.float32))


class BankAdaptor(Adaptor):
    """Changes each image by `len(PARTS)` settings: mixes restored versions of it, smooths or sharpens, sets its tone.

    Zero is exactly the identity. The versions of an image need no query and do not depend on the parameters:
    `prepare` makes them once, `mix` is cheap.
    """

    kind = "bank"

    def __init__(self, structure: Bank, parameters: Array) -> None:
        self.structure = structure
        self.parameters = np.asarray(parameters, np.float32)
        if self.parameters.shape != (len(PARTS),):
            raise MethodError(
                f"{self.parameters.size} parameters for a bank that has {len(PARTS)}."
            )

    def candidates(self, images: Array, thetas: Array, noise: int | None = None) -> Array:
        thetas = np.asarray(thetas, np.float32)
        result = np.empty((len(thetas), *images.shape), np.float32)
        used = tuple(bool(column.any()) for column in thetas[:, : len(MIXED)].T)
        step = max(1, PIECE // images[0].size) if len(images) else 1
        for start in range(0, len(images), step):
            place = slice(start, start + step)
            result[:, place] = self.mix(self.prepare(images[place], used), thetas)
        return result

    def prepare(self, images: Array, used: tuple[bool, ...] = (True,) * len(MIXED)) -> Array:
        """Each image and what leads from it to its restored versions: (n, 1 + versions, 3, height, width)."""
        if min(images.shape[2:]) < SMALLEST:
            raise ImageError(
                f"images of {images.shape[2:]} are too small for the bank; it needs {SMALLEST} pixels a side."
            )
        pixels = torch.from_numpy(np.array(images, np.float32, order="C"))
        step = max(1, PIECE // pixels[0].numel()) if len(pixels) else 1
        with torch.inference_mode():
            pieces = [
                ways_from(piece, self.structure.grain, used) for piece in torch.split(pixels, step)
            ]
        prepared: Array = torch.cat(pieces).numpy()
        return prepared

    def mix(self, prepared: Array, thetas: Array) -> Array:
        """The same images through k parameter vectors: (k, n, 3, height, width)."""
        ways, result = (
            torch.from_numpy(prepared),
            torch.empty((len(thetas), len(prepared), *prepared.shape[2:])),
        )
        step = max(1, PIECE // math.prod(prepared.shape[2:]))
        with torch.inference_mode():
            for start in range(0, len(ways), step):
                piece = ways[start : start + step]
                for theta, places in zip(
                    torch.from_numpy(np.asarray(thetas, np.float32)), result, strict=True
                ):
                    places[start : start + step] = toned(piece, theta)
        return result.numpy()

    def differentiable(self, images: Tensor, theta: Tensor, noise: int | None = None) -> Tensor:
        return toned(ways_from(images, self.structure.grain), theta, fixed=False)

    @property
    def units(self) -> Array:
        return units()

    def describe(self) -> str:
        return in_words(self.parameters, self.structure.grain)

    @property
    def settings(self) -> dict[str, Any]:
        return {**asdict(self.structure), "parts": NAMES}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> BankAdaptor:
        """Numbers belong to the parts they were learned for; files from before these were named have the first ones."""
        structure = {name: value for name, value in settings.items() if name != "parts"}
        if settings.get("parts", NAMES) != NAMES:
            raise ValueError(
                "its bank has other parts than this version's; use the version that wrote it."
            )
        return cls(Bank(**structure), parameters)

    def as_module(self) -> nn.Module:
        return Restoration(self.structure.grain, torch.from_numpy(self.parameters.copy()))


class Restoration(nn.Module):
    """The bank with its parameters fixed, for export: versions that have no part in it are not computed."""

    theta: Tensor

    def __init__(self, grain: float, theta: Tensor) -> None:
        super().__init__()
        self.grain = grain
        self.register_buffer("theta", theta)
        self.used = tuple(bool(value) for value in theta[: len(MIXED)])

    def forward(self, images: Tensor) -> Tensor:
        return toned(ways_from(images, self.grain, self.used), self.theta)


def scaled(strengths: tuple[float, ...], grain: float) -> tuple[float, ...]:
    return tuple(grain * strength for strength in strengths)


def ways_from(
    images: Tensor, grain: float, used: tuple[bool, ...] = (True,) * len(MIXED)
) -> Tensor:
    """The images, and the way from each to every restored version (zero where it is not used)."""
    versions: dict[str, Tensor] = {}
    wanted = [part for part, flag in zip(MIXED, used, strict=True) if flag]
    for restoration in RESTORATIONS:
        parts = [part for part in wanted if part.family == restoration]
        if parts:
            made = RESTORATIONS[restoration](images, tuple(part.strength for part in parts), grain)
            versions.update(zip((part.name for part in parts), made, strict=True))
    none = torch.zeros_like(images)
    ways = (versions[part.name] - images if part.name in versions else none for part in MIXED)
    return torch.stack([images, *ways], dim=1)


def toned(ways: Tensor, theta: Tensor, fixed: bool = True) -> Tensor:
    """Mix, smooth or sharpen, then tone: (n, 1 + versions, 3, h, w) to (n, 3, h, w) in [0, 1].

    Every line adds nothing where its parameter is zero, so zero is the identity to the last bit; with `fixed`
    parameters such a line is left out, which is most of the time of a search.
    """
    at_work = [not fixed or bool(value) for value in theta]
    place = {part.name: index for index, part in enumerate(PARTS)}

    def works(*parts: str) -> bool:
        return any(at_work[place[part]] for part in parts)

    def value(part: str) -> Tensor:
        return theta[place[part]]

    image = ways[:, 0]
    for index, part in enumerate(MIXED):
        if works(part.name):
            image = image + value(part.name) * ways[:, 1 + index]
    if works(*(part.name for part in KERNELS)):
        kernels = slice(len(MIXED), len(MIXED) + len(KERNELS))
        image = filtered(image, theta[kernels], at_work[kernels])
    if works("standard contrast"):
        mean = image.mean((1, 2, 3), keepdim=True)
        # the root of nothing has no slope
        deviation = (image - mean).square().mean((1, 2, 3), keepdim=True).clamp(min=1e-12).sqrt()
        standardised = (image - mean) * (SPREAD / (deviation + FLAT) - 1) + (MIDDLE - mean)
        image = image + value("standard contrast") * standardised
    if works("saturation"):
        image = image + (value("saturation").exp() - 1) * (image - image.mean(1, keepdim=True))
    if works("contrast"):
        image = image + (value("contrast").exp() - 1) * (image - 0.5)
    if works("brightness", "red", "green", "blue"):
        shift = value("brightness") + torch.stack([value("red"), value("green"), value("blue")])
        image = image + shift[:, None, None]
    image = image.clamp(0, 1)
    if works("gamma"):
        curved = (
            image.clamp(min=1e-6).log() * value("gamma").exp()
        ).exp()  # a power, in half the time
        # a slope even at zero, where the image itself stays as it is
        image = (
            curved
            if fixed
            else torch.where(value("gamma") == 0, image + (curved - curved.detach()), curved)
        )
    return image


def filtered(images: Tensor, weights: Tensor, at_work: list[bool]) -> Tensor:
    """Through one radial kernel: a sum of Gaussians and of the identity that leaves the mean alone."""
    lines = gaussian_lines()
    if (
        torch.onnx.is_in_onnx_export()
    ):  # one convolution there; here the lines of a few Gaussians are faster
        kernel = torch.einsum("r,ry,rx->yx", weights, lines, lines)
        kernel[KERNEL // 2, KERNEL // 2] += 1 - weights.sum()
        return F.conv2d(restore.padded(images, KERNEL // 2), kernel.repeat(3, 1, 1, 1), groups=3)
    wide, result = restore.padded(images, KERNEL // 2), images
    for weight, line, works in zip(weights, lines.tolist(), at_work, strict=True):
        if works:
            blurred = restore.along_line(restore.along_line(wide, line, 2), line, 3)
            result = result + weight * (blurred - images)
    return result


def gaussian_lines() -> Tensor:
    """A cut through the Gaussian of each radius."""
    steps = torch.arange(KERNEL, dtype=torch.float32) - KERNEL // 2
    lines = torch.stack([torch.exp(-steps.square() / (2 * part.strength**2)) for part in KERNELS])
    return lines / lines.sum(1, keepdim=True)

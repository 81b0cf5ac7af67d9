"""The paper's data adaptor: a small convolutional network whose output is added to the image (section 3.4, B.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from soda_tta.adaptors.adaptor import DEVIATION, Adaptor
from soda_tta.adaptors.fused import cache_sized, fused_perturbations
from soda_tta.errors import ImageError, MethodError
from soda_tta.types import Array

ACTIVATIONS = {"hardswish": nn.Hardswish, "relu": nn.ReLU}

# The perturbation is added in normalised pixels; their mean cancels in the instance norm, and only a network whose
# output is the whole image needs it.
CENTRE = 0.5


@dataclass(frozen=True, kw_only=True)
class PaperNetwork:
    """The structure of the network: `blocks` residual blocks and `pairs` of down/up-sampling between two convolutions.

    >>> PaperNetwork().build(seed=0).parameters.size   # the paper's 3,523
    3523
    """

    width: int = 64
    blocks: int = 0
    pairs: int = 0
    activation: str = "hardswish"
    dropout: float = 0.0  # inside the residual blocks
    residual: bool = True  # False: the network's output *is* the image (DA-Direct)
    start: float = 1.0  # times the last random weights: at 0 learning begins with the images (not residual: with grey)
    deviation: float = (
        DEVIATION  # of the data set's pixels: how far a pixel may be moved from there
    )

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise MethodError(
                f"activation {self.activation!r} is unknown; choose {' or '.join(ACTIVATIONS)}."
            )
        if not (
            self.width >= 1
            and 0 <= self.blocks <= 9
            and 0 <= self.pairs <= 4
            and 0 <= self.dropout < 1
        ):
            raise MethodError(
                "a network has width >= 1, 0..9 blocks, 0..4 down/up pairs and dropout in [0, 1)."
            )
        if self.start < 0:
            raise MethodError(
                f"start={self.start:g} multiplies the last layer's first weights; give 0 or more."
            )
        if not 0 < self.deviation <= 1:
            raise MethodError(
                f"deviation={self.deviation:g} is of pixels in [0, 1]: above 0, and at most 1."
            )

    def build(self, seed: int) -> NetworkAdaptor:
        """A network with PyTorch's usual random start, as in the paper, its last layer times `start`."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = Perturbation(self)
        with torch.no_grad():
            for weight in network.layers[-1].parameters():
                weight.mul_(self.start)
        return NetworkAdaptor(self, network)


class NetworkAdaptor(Adaptor):
    """Changes each image by a small network: `clip(image + deviation * tanh(network(image)))`."""

    kind = "network"

    def __init__(self, structure: PaperNetwork, network: Perturbation) -> None:
        self.structure, self.network = structure, network.eval().requires_grad_(False)
        self.shapes = [(name, weight.shape) for name, weight in network.named_parameters()]
        self.parameters = torch.cat([weight.flatten() for weight in network.parameters()]).numpy()

    @property
    def deviation(self) -> float:
        return self.structure.deviation

    def candidates(self, images: Array, thetas: Array, noise: int | None = None) -> Array:
        smallest = (
            2 * 2**self.structure.pairs
        )  # reflection and instance norm need two pixels at the lowest level
        if min(images.shape[2:]) < smallest:
            raise ImageError(
                f"images of {images.shape[2:]} are too small for this network; it needs {smallest} pixels."
            )
        pixels = torch.from_numpy(np.array(images, np.float32, order="C"))
        flat = torch.from_numpy(np.ascontiguousarray(thetas, np.float32))
        result = torch.empty((len(flat), *pixels.shape))
        with torch.inference_mode():
            for place, perturbations in self._perturbations(pixels, flat, noise):
                if self.structure.residual:
                    torch.add(pixels[place], perturbations, alpha=self.deviation, out=perturbations)
                else:
                    perturbations.mul_(self.deviation).add_(CENTRE)
                torch.clamp(perturbations, 0, 1, out=result[:, place])
        return result.numpy()

    def _perturbations(
        self, pixels: Tensor, flat: Tensor, noise: int | None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Piece by piece, so that what lies between the two convolutions stays in the cache."""
        plain = not self.structure.blocks and not self.structure.pairs
        for place in cache_sized(pixels, self.structure.width):
            if plain:
                yield (
                    place,
                    fused_perturbations(
                        pixels[place], flat, self.structure.width, self.structure.activation
                    ),
                )
            else:
                yield (
                    place,
                    torch.stack(
                        [self._perturb(pixels[place], theta, noise, place.start) for theta in flat]
                    ),
                )

    def _perturb(self, pixels: Tensor, theta: Tensor, noise: int | None, start: int) -> Tensor:
        self.network.train(noise is not None)
        self.network.seed_dropout(None if noise is None else (noise, start))
        output: Tensor = functional_call(self.network, self.unflatten(theta), (pixels,))
        return output

    def differentiable(self, images: Tensor, theta: Tensor, noise: int | None = None) -> Tensor:
        perturbation = self._perturb(images, theta, noise, 0)
        return (
            (images if self.structure.residual else CENTRE) + self.deviation * perturbation
        ).clamp(0, 1)

    def unflatten(self, theta: Tensor) -> dict[str, Tensor]:
        """The flat vector as named weights (views, so that gradients reach it)."""
        sizes = [shape.numel() for _, shape in self.shapes]
        if theta.numel() != sum(sizes):
            raise MethodError(f"{theta.numel()} parameters for a network that has {sum(sizes)}.")
        parts = zip(self.shapes, torch.split(theta, sizes), strict=True)
        return {name: part.view(shape) for (name, shape), part in parts}

    def describe(self) -> str:
        return f"a network of {self.parameters.size:,} weights adds up to {self.deviation:g} to each pixel value"

    @property
    def settings(self) -> dict[str, Any]:
        return asdict(self.structure)

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> NetworkAdaptor:
        adaptor = PaperNetwork(**settings).build(seed=0)
        adaptor.unflatten(torch.from_numpy(parameters))  # refuses a vector of another length
        adaptor.parameters = parameters
        return adaptor

    def as_module(self) -> nn.Module:
        network = Perturbation(self.structure)
        network.load_state_dict(self.unflatten(torch.from_numpy(self.parameters.copy())))
        return Adapted(network, self.structure).eval()


class Adapted(nn.Module):
    """The whole adaptor as one module, for export."""

    def __init__(self, network: nn.Module, structure: PaperNetwork) -> None:
        super().__init__()
        self.network, self.residual, self.deviation = (
            network,
            structure.residual,
            structure.deviation,
        )

    def forward(self, images: Tensor) -> Tensor:
        base = images if self.residual else CENTRE
        adapted: Tensor = base + self.deviation * self.network(images)
        return adapted.clamp(0, 1)


class Perturbation(nn.Module):
    """Reflect-pad, convolution, instance norm, activation [, ...], reflect-pad, convolution, tanh."""

    def __init__(self, structure: PaperNetwork) -> None:
        super().__init__()
        width, activation = structure.width, ACTIVATIONS[structure.activation]
        layers: list[nn.Module] = [*convolution(3, width), activation()]
        for level in range(structure.pairs):
            narrow = width * 2**level
            down = nn.Conv2d(narrow, 2 * narrow, 3, stride=2, padding=1)
            layers += [down, nn.InstanceNorm2d(2 * narrow), activation()]
        layers += [
            ResidualBlock(width * 2**structure.pairs, structure) for _ in range(structure.blocks)
        ]
        for level in reversed(range(structure.pairs)):
            narrow = width * 2**level
            up = nn.ConvTranspose2d(2 * narrow, narrow, 3, stride=2, padding=1, output_padding=1)
            layers += [up, nn.InstanceNorm2d(narrow), activation()]
        self.layers = nn.Sequential(*layers, nn.ReflectionPad2d(1), nn.Conv2d(width, 3, 3))
        self.multiple = 2**structure.pairs

    def forward(self, images: Tensor) -> Tensor:
        height, width = images.shape[2:]
        if self.multiple > 1:  # down and up again must end at the size it began with
            images = F.pad(
                images, (0, -width % self.multiple, 0, -height % self.multiple), mode="reflect"
            )
        output: Tensor = torch.tanh(self.layers(images))
        return output[:, :, :height, :width] if self.multiple > 1 else output

    def seed_dropout(self, seed: tuple[int, int] | None) -> None:
        for index, layer in enumerate(self.modules()):
            if isinstance(layer, SharedDropout):
                layer.seed = None if seed is None else (*seed, index)


class ResidualBlock(nn.Module):
    """Convolution, norm, activation [, dropout], convolution, norm, and the input added."""

    def __init__(self, width: int, structure: PaperNetwork) -> None:
        super().__init__()
        layers: list[nn.Module] = [*convolution(width, width), ACTIVATIONS[structure.activation]()]
        if structure.dropout:
            layers.append(SharedDropout(structure.dropout))
        self.layers = nn.Sequential(*layers, *convolution(width, width))

    def forward(self, features: Tensor) -> Tensor:
        output: Tensor = features + self.layers(features)
        return output


class SharedDropout(nn.Module):
    """Dropout whose mask is a function of a seed: a finite difference needs the same mask on both sides."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.seed: tuple[int, ...] | None = None

    def forward(self, features: Tensor) -> Tensor:
        if not self.training or self.seed is None:
            return features
        generator = torch.Generator().manual_seed(hash(self.seed) & (2**63 - 1))
        kept = torch.rand(features.shape, generator=generator) >= self.rate
        return features * kept / (1 - self.rate)


def convolution(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.ReflectionPad2d(1), nn.Conv2d(inputs, outputs, 3), nn.InstanceNorm2d(outputs)]

"""The layers of the paper's data adaptor as PyTorch modules (paper, section 3.4 and B.3)."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ACTIVATIONS = {"hardswish": nn.Hardswish, "relu": nn.ReLU}

# The perturbation is added in normalised pixels. Their mean cancels in the instance norm; only a
# network whose output is the whole image needs it.
CENTRE = 0.5


class Structure(Protocol):
    """The settings that the layers need; `PaperNetwork` has them."""

    @property
    def activation(self) -> str: ...

    @property
    def blocks(self) -> int: ...

    @property
    def deviation(self) -> float: ...

    @property
    def dropout(self) -> float: ...

    @property
    def pairs(self) -> int: ...

    @property
    def residual(self) -> bool: ...

    @property
    def width(self) -> int: ...


class NetworkModule(nn.Module):
    """The whole adaptor as one module, for export."""

    def __init__(self, network: nn.Module, structure: Structure) -> None:
        super().__init__()
        self.network = network
        self.residual = structure.residual
        self.deviation = structure.deviation

    def forward(self, images: Tensor) -> Tensor:
        base = images if self.residual else CENTRE
        adapted: Tensor = base + self.deviation * self.network(images)
        return adapted.clamp(0, 1)


class Perturbation(nn.Module):
    """Reflection pad, convolution, norm, activation [, ...], reflection pad, convolution, tanh."""

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        width = structure.width
        activation = ACTIVATIONS[structure.activation]
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
        if self.multiple > 1:  # down and up again must end at the original size
            margins = (0, -width % self.multiple, 0, -height % self.multiple)
            images = F.pad(images, margins, mode="reflect")
        output: Tensor = torch.tanh(self.layers(images))
        return output[:, :, :height, :width] if self.multiple > 1 else output

    def seed_dropout(self, seed: tuple[int, int] | None) -> None:
        """Fix the masks of all dropout layers; None switches dropout off."""
        for index, layer in enumerate(self.modules()):
            if isinstance(layer, SharedDropout):
                layer.seed = None if seed is None else (*seed, index)


class ResidualBlock(nn.Module):
    """Convolution, norm, activation [, dropout], convolution, norm; the input is added."""

    def __init__(self, width: int, structure: Structure) -> None:
        super().__init__()
        layers: list[nn.Module] = [*convolution(width, width), ACTIVATIONS[structure.activation]()]
        if structure.dropout:
            layers.append(SharedDropout(structure.dropout))
        self.layers = nn.Sequential(*layers, *convolution(width, width))

    def forward(self, features: Tensor) -> Tensor:
        output: Tensor = features + self.layers(features)
        return output


class SharedDropout(nn.Module):
    """Dropout whose mask depends on a seed alone.

    A finite difference needs the same mask on both sides.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.seed: tuple[int, ...] | None = None

    def forward(self, features: Tensor) -> Tensor:
        if not self.training or self.seed is None:
            return features
        generator = torch.Generator().manual_seed(hash(self.seed) & (2**63 - 1))
        # drawn on the CPU: the mask is the same on every device
        kept = torch.rand(features.shape, generator=generator, device="cpu") >= self.rate
        return features * kept.to(features.device) / (1 - self.rate)


def convolution(inputs: int, outputs: int) -> list[nn.Module]:
    """A 3x3 convolution that keeps the size, followed by instance norm."""
    return [nn.ReflectionPad2d(1), nn.Conv2d(inputs, outputs, 3), nn.InstanceNorm2d(outputs)]

"""The paper's data adaptor: a small convolutional network whose output is added to the image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from soda_tta.adaptors.adaptor import DEVIATION, Adaptor
from soda_tta.adaptors.fused import cache_sized, fused_perturbations
from soda_tta.adaptors.layers import ACTIVATIONS, CENTRE, NetworkModule, Perturbation
from soda_tta.devices import as_array, as_tensor, working_on
from soda_tta.errors import ImageError, MethodError
from soda_tta.settings import convert, setting
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class PaperNetwork:
    """The structure of the network (paper, section 3.4 and B.3).

    Parameters
    ----------
    width : int, default 64
        Channels between the two convolutions.
    blocks : int in 0..9, default 0
        Residual blocks between the two convolutions.
    pairs : int in 0..4, default 0
        Pairs of down- and up-sampling between them.
    activation : str, default "hardswish"
        "hardswish" or "relu".
    dropout : float in [0, 1), default 0
        Share of values dropped inside the residual blocks during training.
    residual : bool, default True
        True: the output is added to the image. False: the output *is* the image (DA-Direct).
    start : float, default 1
        Multiplies the random weights of the last layer. At 0, learning starts at the original
        images (without `residual`: at grey images).
    deviation : float in (0, 1], default 0.2
        Standard deviation of the pixels of the data set. A pixel moves by at most this.

    Examples
    --------
    >>> PaperNetwork().build(seed=0).parameters.size  # as in the paper
    3523
    """

    width: int = setting(64, "channels of the network")
    blocks: int = setting(0, "residual blocks between the two convolutions")
    pairs: int = setting(0, "pairs of down- and up-sampling between the two convolutions")
    activation: str = setting("hardswish", "hardswish or relu")
    dropout: float = setting(0.0, "share of values dropped inside the blocks during training")
    residual: bool = setting(
        True, "false: the network's output is the image itself, not a change of it"
    )
    start: float = setting(
        1.0, "factor of the last layer's random weights; 0 starts at the original images"
    )
    deviation: float = setting(
        DEVIATION,
        "standard deviation of the data's pixels (in [0, 1]): how far the network may move a "
        "pixel, and the size of one normalised pixel",
    )

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise MethodError(
                f"activation {self.activation!r} is unknown; choose {' or '.join(ACTIVATIONS)}."
            )
        if not (self.width >= 1 and 0 <= self.blocks <= 9 and 0 <= self.pairs <= 4):
            raise MethodError(
                f"width={self.width}, blocks={self.blocks}, pairs={self.pairs}: a network needs "
                "width >= 1, 0 to 9 blocks and 0 to 4 pairs."
            )
        if not 0 <= self.dropout < 1:
            raise MethodError(f"dropout={self.dropout:g} must lie in [0, 1).")
        if self.start < 0:
            raise MethodError(
                f"start={self.start:g} multiplies the first weights of the last layer; "
                "give 0 or more."
            )
        if not 0 < self.deviation <= 1:
            raise MethodError(
                f"deviation={self.deviation:g} is in pixels of [0, 1]; "
                "give more than 0 and at most 1."
            )

    def build(self, seed: int) -> NetworkAdaptor:
        """A network with PyTorch's default random weights, as in the paper, scaled by `start`.

        Parameters
        ----------
        seed : int
            Seed of the weights. PyTorch's global generator is left alone.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = Perturbation(self)
        with torch.no_grad():
            for weight in network.layers[-1].parameters():
                weight.mul_(self.start)
        return NetworkAdaptor(structure=self, network=network)


class NetworkAdaptor(Adaptor):
    """Changes each image by a small network: `clip(image + deviation * tanh(network(image)))`.

    Parameters
    ----------
    structure : PaperNetwork
    network : Perturbation
        A network of this structure; its weights are the initial parameters.

    Examples
    --------
    >>> adaptor = PaperNetwork(width=4).build(seed=0)
    >>> adaptor.describe()
    'a network of 223 weights changes each pixel value by up to 0.2'
    """

    kind = "network"

    def __init__(self, *, structure: PaperNetwork, network: Perturbation) -> None:
        self.structure = structure
        self.network = network.eval().requires_grad_(False)
        self.shapes = [(name, weight.shape) for name, weight in network.named_parameters()]
        self.parameters = torch.cat([weight.flatten() for weight in network.parameters()]).numpy()

    @property
    def deviation(self) -> float:
        return self.structure.deviation

    def candidates(self, images: Array, thetas: Array, noise: int | None = None) -> Array:
        # reflection and instance norm need two pixels at the lowest level
        smallest = 2 * 2**self.structure.pairs
        if min(images.shape[2:]) < smallest:
            raise ImageError(
                f"images of {images.shape[2:]} pixels are too small for this network; "
                f"it needs at least {smallest} pixels per side."
            )
        pixels = as_tensor(np.array(images, np.float32, order="C"), self.device)
        vectors = as_tensor(np.ascontiguousarray(thetas, np.float32), self.device)
        result = pixels.new_empty((len(vectors), *pixels.shape))
        with torch.inference_mode(), working_on(self.device):
            for place, perturbations in self._perturbations(pixels, vectors, noise):
                if self.structure.residual:
                    torch.add(pixels[place], perturbations, alpha=self.deviation, out=perturbations)
                else:
                    perturbations.mul_(self.deviation).add_(CENTRE)
                torch.clamp(perturbations, 0, 1, out=result[:, place])
        return as_array(result)

    def _perturbations(
        self, pixels: Tensor, thetas: Tensor, noise: int | None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Piece by piece, so that the map between the two convolutions stays in the cache."""
        structure = self.structure
        plain = not structure.blocks and not structure.pairs
        for place in cache_sized(pixels, structure.width):
            piece = pixels[place]
            if plain:
                yield (
                    place,
                    fused_perturbations(piece, thetas, structure.width, structure.activation),
                )
            else:
                outputs = [self._perturb(piece, theta, noise, place.start) for theta in thetas]
                yield place, torch.stack(outputs)

    def _perturb(self, pixels: Tensor, theta: Tensor, noise: int | None, start: int) -> Tensor:
        """The network's output for one parameter vector, computed layer by layer."""
        self.network.train(noise is not None)
        self.network.seed_dropout(None if noise is None else (noise, start))
        output: Tensor = functional_call(self.network, self.unflatten(theta), (pixels,))
        return output

    def differentiable(self, images: Tensor, theta: Tensor, noise: int | None = None) -> Tensor:
        perturbation = self._perturb(images, theta, noise, 0)
        base = images if self.structure.residual else CENTRE
        return (base + self.deviation * perturbation).clamp(0, 1)

    def unflatten(self, theta: Tensor) -> dict[str, Tensor]:
        """The flat vector as named weights: views, so that gradients reach the vector.

        Parameters
        ----------
        theta : tensor of shape (d,)
        """
        sizes = [shape.numel() for _, shape in self.shapes]
        if theta.numel() != sum(sizes):
            raise MethodError(
                f"the network has {sum(sizes)} parameters, but {theta.numel()} were given."
            )
        pieces = zip(self.shapes, torch.split(theta, sizes), strict=True)
        return {name: piece.view(shape) for (name, shape), piece in pieces}

    def describe(self) -> str:
        return (
            f"a network of {self.parameters.size:,} weights changes each pixel value "
            f"by up to {self.deviation:g}"
        )

    @property
    def settings(self) -> dict[str, Any]:
        return asdict(self.structure)

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> NetworkAdaptor:
        default = asdict(PaperNetwork())
        checked = {name: convert(name, settings[name], default[name]) for name in settings}
        structure = PaperNetwork(**checked)
        if structure.width > parameters.size:  # before memory is allocated for it
            raise ValueError(f"a network of width {structure.width} has more parameters")
        adaptor = structure.build(seed=0)
        adaptor.unflatten(torch.from_numpy(parameters))  # refuses a vector of another length
        adaptor.parameters = parameters
        return adaptor

    def as_module(self) -> nn.Module:
        network = Perturbation(self.structure)
        network.load_state_dict(self.unflatten(torch.from_numpy(self.parameters.copy())))
        return NetworkModule(network, self.structure).eval()

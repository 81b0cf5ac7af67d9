"""An adaptor: what may change an image before the model sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from soda_tta.adaptors.files import read_adaptor_file, write_adaptor_file
from soda_tta.errors import RunError
from soda_tta.protocols.onnx_files import export_onnx
from soda_tta.types import Array

# The paper measures perturbations in pixels normalised by the deviation of the data set: 0.20 (CIFAR-10), 0.23
# (ImageNet), 0.27 (CIFAR-100). A number of the adaptor's own, and not of what its box was told, keeps both independent.
DEVIATION = 0.2


class Adaptor(ABC):
    """`adaptor(images) -> images`, with its parameters as one flat vector: a search sees only R^d.

    Images are float32 NCHW RGB in [0, 1] on both sides, and each is changed without regard to its neighbours.
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Adaptor]]] = {}
    parameters: Array  # float32, shape (d,)

    def __init_subclass__(cls) -> None:
        Adaptor.kinds[cls.kind] = cls

    def __call__(self, images: Array) -> Array:
        result: Array = self.candidates(images, self.parameters[None])[0]
        return result

    @abstractmethod
    def candidates(self, images: Array, thetas: Array, noise: int | None = None) -> Array:
        """The same images through k parameter vectors (k, d): an array (k, n, 3, height, width).

        `noise` seeds what is random while learning (dropout), alike for every candidate; None switches it off.
        """

    @abstractmethod
    def differentiable(self, images: Any, theta: Any, noise: int | None = None) -> Any:
        """The same for one candidate on tensors, so that a gradient by `theta` can be had."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Everything but the parameters that is needed to build this adaptor again, as plain JSON."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> Adaptor:
        """The inverse of `settings`."""

    @abstractmethod
    def as_module(self) -> Any:
        """A PyTorch module that does the same to a batch of images."""

    @property
    def deviation(self) -> float:
        """One normalised pixel, in pixels of [0, 1]."""
        return DEVIATION

    @property
    def units(self) -> Array:
        """A typical size of each parameter, in which evolution measures its steps."""
        return np.ones(self.parameters.size)

    def describe(self) -> str:
        """What it does to an image, in words."""
        return f"{self.kind}, {self.parameters.size:,} parameters"

    def save(self, path: str | Path) -> None:
        """Write parameters and structure to a safetensors file."""
        write_adaptor_file(Path(path), self.kind, self.settings, self.parameters)

    @staticmethod
    def load(path: str | Path) -> Adaptor:
        """Read an adaptor back; nothing in the file is executed."""
        kind, settings, parameters = read_adaptor_file(Path(path))
        if kind not in Adaptor.kinds:
            raise RunError(
                f"{path} holds an adaptor of kind {kind!r}, which this version does not know."
            )
        try:
            return Adaptor.kinds[kind].from_settings(settings, parameters)
        except (TypeError, ValueError) as error:
            raise RunError(f"{path} holds an adaptor that cannot be built: {error}") from error

    def to_onnx(self, path: str | Path) -> float:
        """Write an ONNX file that runs in front of the model anywhere; returns its largest deviation from PyTorch.

        The file is checked in ONNX Runtime on images of another size and number than it was traced with.
        """
        return export_onnx(
            self.as_module(),
            Path(path),
            example=(2, 3, 32, 32),
            check=(3, 3, 48, 40),
            output="adapted",
        )

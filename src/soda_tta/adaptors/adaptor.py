"""An adaptor: a function that changes images before the model receives them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from soda_tta.adaptors.answering import PLAIN, Answering
from soda_tta.adaptors.files import read_adaptor_file, write_adaptor_file
from soda_tta.devices import default_device, find_device
from soda_tta.errors import ImageError, MethodError, RunError
from soda_tta.foreign_text import quoted
from soda_tta.protocols.onnx_files import OPSET, export_onnx
from soda_tta.types import Array

if TYPE_CHECKING:
    from typing_extensions import Self

# The paper measures perturbations in pixels normalised by the standard deviation of the data set:
# 0.20 (CIFAR-10), 0.23 (ImageNet), 0.27 (CIFAR-100). This is a setting of the adaptor and not taken
# from the declared input of its box, so that both stay independent.
DEVIATION = 0.2
# What building an adaptor from a damaged file may raise, in Python and in PyTorch.
UNBUILDABLE = (
    *(TypeError, ValueError, KeyError, AttributeError),
    *(OverflowError, RuntimeError, MemoryError, MethodError),
)


def check_pixels(images: Array) -> Array:
    """The images as float32; raises an `ImageError` unless they are NCHW RGB in [0, 1].

    Bytes would be clipped to white without a word, and dividing them here would return another
    range than was passed in.
    """
    images = np.asarray(images)
    remedy = "pass soda_tta.open_images(images)[:]"
    if images.ndim != 4 or images.shape[1] != 3:
        raise ImageError(
            f"an adaptor takes images of shape (n, 3, height, width); got {images.shape}: {remedy}."
        )
    if images.dtype.kind != "f":
        raise ImageError(f"an adaptor takes floats in [0, 1]; got {images.dtype}: {remedy}.")
    if images.size and not (images.min() >= 0 and images.max() <= 1):  # also catches NaN
        low, high = float(images.min()), float(images.max())
        raise ImageError(f"an adaptor takes pixels in [0, 1]; got {low:.4g} .. {high:.4g}.")
    return images.astype(np.float32, copy=False)


class Adaptor(ABC):
    """`adaptor(images) -> images`, with all its parameters in one flat vector.

    Images are float32 NCHW RGB in [0, 1] on both sides. Each image is changed independently of the
    others in its batch. A search sees only the vector of parameters.

    A subclass sets `kind`, the name under which files refer to it, and `parameters`, a float32
    array of shape (d,). It is registered by its definition, so that `Adaptor.load` finds it.

    Examples
    --------
    >>> from soda_tta.adaptors import Bank
    >>> adaptor = Bank().build()
    >>> images = np.full((2, 3, 8, 8), 0.5, np.float32)
    >>> adaptor(images).shape
    (2, 3, 8, 8)
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Adaptor]]] = {}
    parameters: Array
    stated_device: str | None = None
    answering: Answering = PLAIN  # how the model's responses become answers

    @property
    def device(self) -> str:
        """Where candidates are computed; see `soda_tta.devices`."""
        return self.stated_device or default_device()

    def on(self, device: str) -> Self:
        """The same adaptor, computed on another device: "cpu", "cuda" or "mps"."""
        same = copy(self)
        same.stated_device = find_device(device)
        return same

    def answered(self, answering: Answering) -> Self:
        """The same adaptor with other answers: further views, or class weights."""
        if answering.is_plain and self.answering.is_plain:
            return self
        same = copy(self)
        same.answering = answering
        return same

    def __init_subclass__(cls) -> None:
        Adaptor.kinds[cls.kind] = cls

    def __call__(self, images: Array) -> Array:
        """The adapted images, float32 NCHW RGB in [0, 1].

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width)
            RGB in [0, 1]. `open_images(array)[:]` is such an array for bytes and any axis order.
        """
        adapted: Array = self.candidates(check_pixels(images), self.parameters[None])[0]
        return adapted

    @abstractmethod
    def candidates(self, images: Array, thetas: Array, noise: int | None = None) -> Array:
        """Adapt the same images with several parameter vectors.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width)
        thetas : array of shape (k, d)
            One parameter vector per candidate.
        noise : int, optional
            Seed of what is random during training (dropout), the same for every candidate. None
            switches it off.

        Returns
        -------
        float32 array of shape (k, n, 3, height, width)
        """

    @abstractmethod
    def differentiable(self, images: Any, theta: Any, noise: int | None = None) -> Any:
        """The same for one parameter vector on torch tensors; gradients reach `theta`."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Everything except the parameters that is needed to build this adaptor, as plain JSON."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> Adaptor:
        """The inverse of `settings`.

        Parameters
        ----------
        settings : dict
            As returned by `settings`.
        parameters : float32 array of shape (d,)
        """

    @abstractmethod
    def as_module(self) -> Any:
        """A PyTorch module that adapts a batch of images in the same way."""

    @property
    def deviation(self) -> float:
        """The size of one normalised pixel, in pixels of [0, 1]."""
        return DEVIATION

    @property
    def units(self) -> Array:
        """A typical size of each parameter; evolution measures its steps in these units."""
        return np.ones(self.parameters.size)

    def describe(self) -> str:
        """What the adaptor does to an image, in a few words."""
        return f"{self.kind}, {self.parameters.size:,} parameters"

    def __repr__(self) -> str:
        """The expression that makes this adaptor or, if it has too many parameters, how to load it.

        >>> from soda_tta.adaptors import PaperNetwork
        >>> PaperNetwork(width=4).build(seed=0)
        <NetworkAdaptor, 223 parameters: keep it with .save(path), load it with Adaptor.load(path)>
        """
        return (
            f"<{type(self).__name__}, {self.parameters.size:,} parameters: "
            "keep it with .save(path), load it with Adaptor.load(path)>"
        )

    def save(self, path: str | Path) -> None:
        """Write parameters and settings to a safetensors file.

        Parameters
        ----------
        path : str or Path
        """
        answers = None if self.answering.is_plain else self.answering.settings
        write_adaptor_file(Path(path), self.kind, self.settings, self.parameters, answers)

    @staticmethod
    def load(path: str | Path) -> Adaptor:
        """Read an adaptor from a file. Nothing in the file is executed.

        Parameters
        ----------
        path : str or Path
            A file written by `save`.
        """
        kind, settings, parameters, answers = read_adaptor_file(Path(path))
        if kind not in Adaptor.kinds:
            raise RunError(
                f"{path} holds an adaptor of kind {kind!r}, which this version does not know; "
                f"it knows {', '.join(sorted(Adaptor.kinds))}."
            )
        try:
            adaptor = Adaptor.kinds[kind].from_settings(settings, parameters)
            if answers is not None:
                adaptor.answering = Answering.from_settings(answers)
            adaptor.describe()  # what cannot be described cannot be used either
        except UNBUILDABLE as error:
            raise RunError(
                f"{path} holds an adaptor that cannot be built ({quoted(error)}); "
                "give an adaptor.safetensors written by a run."
            ) from error
        return adaptor

    def to_onnx(self, path: str | Path, *, opset: int = OPSET) -> float:
        """Write an ONNX file that can run in front of any model.

        The file is verified in ONNX Runtime on images of another size and number than those it was
        traced with.

        Parameters
        ----------
        path : str or Path
        opset : int, default 17
            Version of the ONNX operators, 12 to 20.

        Returns
        -------
        float : the largest difference from PyTorch, in pixels of [0, 1]
        """
        return export_onnx(
            self.as_module(),
            Path(path),
            example=(2, 3, 32, 32),
            check=(3, 3, 48, 40),
            output="adapted",
            opset=opset,
        )

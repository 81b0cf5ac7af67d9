"""The restoration bank: a few readable parameters mix restored versions of an image and tone it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.adaptors.mixing import ALL_USED, adapted, with_differences
from soda_tta.adaptors.parts import MIXED, PARTS, describe_parts, units
from soda_tta.devices import as_array, as_tensor, working_on
from soda_tta.errors import ImageError, MethodError
from soda_tta.settings import setting
from soda_tta.types import Array

NAMES = [part.name for part in PARTS]
SMALLEST = 4  # pixels per side, which the reflections at the border need
PIECE = 2**16  # pixel values restored at a time: intermediate results stay in the cache


@dataclass(frozen=True, kw_only=True)
class Bank:
    """The structure of the restoration bank. Zero is the identity, so it has no random start.

    Parameters
    ----------
    grain : float in (0, 16], default 1
        Multiplies the radii of wide blurs and of motions, and the thresholds of shrinkage. Use 1
        for images of 32 pixels and more for larger ones, where the same scene covers more pixels.

    Examples
    --------
    >>> Bank.for_size((224, 224))
    Bank(grain=2.65)
    >>> Bank().build().describe()
    'leaves the image unchanged'
    """

    grain: float = setting(
        1.0, "scale of the bank: 1 for images of 32 pixels, about sqrt(side / 32) for larger ones"
    )

    def __post_init__(self) -> None:
        if not 0 < self.grain <= 16:
            raise MethodError(f"grain={self.grain} must be above 0 and at most 16.")

    @staticmethod
    def for_size(size: tuple[int, ...]) -> Bank:
        """The bank for images of this size.

        Parameters
        ----------
        size : tuple of int
            The last two entries are height and width, in pixels.
        """
        return Bank(grain=round(max(1.0, (min(size[-2:]) / 32) ** 0.5), 2))

    def build(self, seed: int = 0) -> BankAdaptor:
        """An adaptor that starts at the identity. `seed` is accepted and has no effect."""
        return BankAdaptor(structure=self, parameters=np.zeros(len(PARTS), np.float32))

    def adaptor(self, parts: Mapping[str, float]) -> BankAdaptor:
        """An adaptor with these parts; the others are 0. It is also what an adaptor prints.

        Parameters
        ----------
        parts : dict
            Values by the names of parts, as in `NAMES`.

        Examples
        --------
        >>> Bank().adaptor({"median": 0.8}).describe()
        'median filter 80%'
        """
        if unknown := sorted(set(parts) - set(NAMES)):
            raise MethodError(
                f"the bank has no part {', '.join(unknown)}; it has {', '.join(NAMES)}."
            )
        values = [parts.get(name, 0.0) for name in NAMES]
        return BankAdaptor(structure=self, parameters=np.array(values, np.float32))


class BankAdaptor(Adaptor):
    """Mixes restored versions of an image, smooths or sharpens it and sets its tone.

    Zero is exactly the identity. The restored versions need no query and do not depend on the
    parameters: `prepare` computes them once, and `mix` is cheap.

    Parameters
    ----------
    structure : Bank
    parameters : array of shape (len(PARTS),)
        One value per part; 0 leaves the image unchanged.

    Examples
    --------
    >>> parameters = np.zeros(len(PARTS))
    >>> parameters[NAMES.index("brightness")] = 0.1
    >>> BankAdaptor(structure=Bank(), parameters=parameters).describe()
    'brighter by 0.10'
    """

    kind = "bank"

    def __init__(self, *, structure: Bank, parameters: Array) -> None:
        self.structure = structure
        self.parameters = np.asarray(parameters, np.float32)
        if self.parameters.shape != (len(PARTS),):
            raise MethodError(
                f"the bank has {len(PARTS)} parameters, but {self.parameters.size} were given."
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

    def prepare(self, images: Array, used: tuple[bool, ...] = ALL_USED) -> Array:
        """Each image and its differences to the restored versions.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width)
        used : tuple of bool, one per part of `MIXED`
            Versions that are not used are not computed.

        Returns
        -------
        float32 array of shape (n, 1 + versions, 3, height, width)
        """
        if min(images.shape[2:]) < SMALLEST:
            raise ImageError(
                f"images of {images.shape[2:]} pixels are too small for the bank; "
                f"it needs at least {SMALLEST} pixels per side."
            )
        pixels = as_tensor(np.array(images, np.float32, order="C"), self.device)
        step = max(1, PIECE // pixels[0].numel()) if len(pixels) else 1
        with torch.inference_mode(), working_on(self.device):
            pieces = [
                with_differences(piece, self.structure.grain, used)
                for piece in torch.split(pixels, step)
            ]
        return as_array(torch.cat(pieces))

    def mix(self, prepared: Array, thetas: Array) -> Array:
        """Adapt prepared images with several parameter vectors.

        Parameters
        ----------
        prepared : array of shape (n, 1 + versions, 3, height, width)
            From `prepare`.
        thetas : array of shape (k, len(PARTS))

        Returns
        -------
        float32 array of shape (k, n, 3, height, width)
        """
        stack = as_tensor(prepared, self.device)
        vectors = as_tensor(np.asarray(thetas, np.float32), self.device)
        result = stack.new_empty((len(thetas), len(prepared), *prepared.shape[2:]))
        step = max(1, PIECE // math.prod(prepared.shape[2:]))
        with torch.inference_mode(), working_on(self.device):
            for start in range(0, len(stack), step):
                place = slice(start, start + step)
                for theta, images in zip(vectors, result, strict=True):
                    images[place] = adapted(stack[place], theta)
        return as_array(result)

    def differentiable(self, images: Tensor, theta: Tensor, noise: int | None = None) -> Tensor:
        return adapted(with_differences(images, self.structure.grain), theta, fixed=False)

    @property
    def units(self) -> Array:
        return units()

    def describe(self) -> str:
        return describe_parts(self.parameters, self.structure.grain)

    def __repr__(self) -> str:
        # The text of a float32 has as many digits as it needs to be read back unchanged.
        values = zip(NAMES, self.parameters, strict=True)
        parts = {name: float(str(value)) for name, value in values if value}
        return f"{self.structure!r}.adaptor({parts!r})"

    @property
    def settings(self) -> dict[str, Any]:
        return {**asdict(self.structure), "parts": NAMES}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> BankAdaptor:
        """The inverse of `settings`.

        Parameters belong to the parts they were learned for. Parts that are new since then are 0.
        A part that this version no longer has is refused, unless it was not used.
        """
        structure = {name: value for name, value in settings.items() if name != "parts"}
        bank = Bank(**structure)
        names = settings.get("parts", [])
        if len(names) != len(parameters):
            raise ValueError(
                f"it names {len(names)} parts of the bank for {len(parameters)} parameters; "
                "use the version that wrote it."
            )
        values = dict(zip(names, parameters.tolist(), strict=True))
        used = {name: value for name, value in values.items() if value}
        if missing := sorted(set(used) - set(NAMES)):
            raise ValueError(
                f"its bank uses {', '.join(missing)}, which this version does not have; "
                "use the version that wrote it."
            )
        return bank.adaptor(used)

    def as_module(self) -> nn.Module:
        return BankModule(self.structure.grain, torch.from_numpy(self.parameters.copy()))


class BankModule(nn.Module):
    """The bank with fixed parameters, for export; versions that are not used are not computed."""

    theta: Tensor

    def __init__(self, grain: float, theta: Tensor) -> None:
        super().__init__()
        self.grain = grain
        self.register_buffer("theta", theta)
        self.used = tuple(bool(value) for value in theta[: len(MIXED)])

    def forward(self, images: Tensor) -> Tensor:
        return adapted(with_differences(images, self.grain, self.used), self.theta)

"""One adaptor for each condition of the images, and a router that chooses between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from soda_tta.adaptors.adaptor import DEVIATION, Adaptor, check_pixels
from soda_tta.adaptors.identity import Identity
from soda_tta.adaptors.routed_module import RoutedModule
from soda_tta.conditions.router import Router, Routes
from soda_tta.errors import MethodError
from soda_tta.foreign_text import quoted
from soda_tta.protocols.onnx_files import OPSET
from soda_tta.types import Array
from soda_tta.wording import counted

UNCHANGED = Identity().describe()


class RoutedAdaptor(Adaptor):
    """Changes each image by the adaptor of its condition.

    An image has the same condition alone and in a batch. An image that is unlike all conditions
    (`Routes.familiar`) is left as it is.

    Parameters
    ----------
    router : Router
    adaptors : sequence of Adaptor
        One per condition; `Identity()` leaves the images of a condition as they are.
    words : sequence of str
        What each condition looks like.
    shares : sequence of float in [0, 1]
        The share of each condition in the images that it was learned on.

    Examples
    --------
    >>> from soda_tta import find_conditions
    >>> from soda_tta.adaptors import Bank
    >>> random = np.random.default_rng(0)
    >>> plain = random.random((60, 3, 4, 4)).repeat(4, axis=2).repeat(4, axis=3)
    >>> noisy = (plain[:20] + 0.2 * random.standard_normal((20, 3, 16, 16))).clip(0, 1)
    >>> images = np.concatenate([plain, noisy]).astype(np.float32)
    >>> found = find_conditions(images, conditions=2)
    >>> adaptor = RoutedAdaptor(
    ...     router=found.router,
    ...     adaptors=[Identity(), Bank().adaptor({"median": 0.8})],
    ...     words=found.words,
    ...     shares=[0.75, 0.25],
    ... )
    >>> adaptor.describe().split("; ")[1]
    'noisy, clipped, 25 % of the images: median filter 80%'
    >>> adaptor.routes(images[[0, 70]]).conditions
    array([0, 1])
    """

    kind = "conditions"

    def __init__(
        self,
        *,
        router: Router,
        adaptors: Sequence[Adaptor],
        words: Sequence[str],
        shares: Sequence[float],
    ) -> None:
        if not len(router) == len(adaptors) == len(words) == len(shares):
            raise MethodError(
                f"a router of {counted(len(router), 'condition')} needs as many adaptors, words "
                f"and shares; got {len(adaptors)}, {len(words)} and {len(shares)}."
            )
        self.router = router
        # copies: conditions may share an adaptor, and each has parameters of its own
        self.adaptors = [copy(adaptor) for adaptor in adaptors]
        self.words = [quoted(text) for text in words]
        self.shares = [float(share) for share in shares]
        if not all(0 <= share <= 1 for share in self.shares):
            raise MethodError(f"the shares of conditions lie in [0, 1]; got {self.shares}.")

    @property
    def parameters(self) -> Array:
        """The parameters of all adaptors, one after the other."""
        return np.concatenate([adaptor.parameters for adaptor in self.adaptors])

    @parameters.setter
    def parameters(self, parameters: Array) -> None:
        for adaptor, own in zip(self.adaptors, self.split(parameters), strict=True):
            adaptor.parameters = own

    def split(self, theta: Any) -> list[Any]:
        """The parts of a parameter vector, or of several in rows, that belong to each adaptor."""
        sizes = [adaptor.parameters.size for adaptor in self.adaptors]
        if theta.shape[-1] != sum(sizes):
            raise MethodError(
                f"the adaptors have {sum(sizes)} parameters, but {theta.shape[-1]} were given."
            )
        ends = np.cumsum(sizes)
        return [theta[..., end - size : end] for size, end in zip(sizes, ends, strict=True)]

    def __call__(self, images: Array) -> Array:
        """The adapted images, float32 NCHW RGB in [0, 1].

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width), RGB in [0, 1]
        """
        return self.routed(images)[0]

    def routes(self, images: Array) -> Routes:
        """The condition of each image, its distance, and whether it is familiar.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width), RGB in [0, 1]
        """
        return self.router(check_pixels(images))

    def routed(self, images: Array) -> tuple[Array, Routes]:
        """The adapted images and their routes, for the price of one.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width), RGB in [0, 1]
        """
        images = check_pixels(images)
        routes = self.router(images)
        return self._along(routes, images, self.parameters[None])[0], routes

    def candidates(self, images: Array, thetas: Array, noise: int | None = None) -> Array:
        return self._along(self.router(images), images, np.asarray(thetas, np.float32), noise)

    def _along(
        self, routes: Routes, images: Array, thetas: Array, noise: int | None = None
    ) -> Array:
        """Adapt images whose routes are known with several parameter vectors."""
        result = np.empty((len(thetas), *images.shape), np.float32)
        result[:, ~routes.familiar] = images[~routes.familiar]
        for adaptor, own, members in self._groups(routes, thetas):
            result[:, members] = adaptor.candidates(images[members], own, noise)
        return result

    def _groups(self, routes: Routes, theta: Any) -> Iterator[tuple[Adaptor, Any, Array]]:
        """Each adaptor that has images, with its parameters and the positions of its images."""
        for place, (adaptor, own) in enumerate(zip(self.adaptors, self.split(theta), strict=True)):
            members = np.flatnonzero(routes.familiar & (routes.conditions == place))
            if members.size:
                yield adaptor, own, members

    def differentiable(self, images: Tensor, theta: Tensor, noise: int | None = None) -> Tensor:
        routes = self.router(images.detach().numpy())
        adapted = images
        for adaptor, own, members in self._groups(routes, theta):
            rows = torch.from_numpy(members)
            changed = adaptor.differentiable(images[rows], own, noise)
            adapted = adapted.index_put((rows,), changed)
        return adapted

    @property
    def deviation(self) -> float:
        learned = (adaptor.deviation for adaptor in self.adaptors if adaptor.parameters.size)
        return next(learned, DEVIATION)

    @property
    def units(self) -> Array:
        return np.concatenate([adaptor.units for adaptor in self.adaptors])

    def describe(self) -> str:
        conditions = []
        for text, share, adaptor in zip(self.words, self.shares, self.adaptors, strict=True):
            does = adaptor.describe()
            does = "left unchanged" if does == UNCHANGED else does
            conditions.append(f"{text}, {100 * share:.0f} % of the images: {does}")
        return "; ".join(conditions)

    def __repr__(self) -> str:
        return (
            f"<RoutedAdaptor, {counted(len(self.adaptors), 'condition')}, "
            f"{self.parameters.size:,} parameters: "
            "keep it with .save(path), load it with Adaptor.load(path)>"
        )

    @property
    def settings(self) -> dict[str, Any]:
        conditions = zip(self.words, self.shares, self.adaptors, strict=True)
        return {
            "router": self.router.settings,
            "conditions": [
                {
                    "words": text,
                    "share": share,
                    "kind": adaptor.kind,
                    "settings": adaptor.settings,
                    "parameters": int(adaptor.parameters.size),
                }
                for text, share, adaptor in conditions
            ],
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parameters: Array) -> RoutedAdaptor:
        conditions = settings["conditions"]
        sizes = [condition["parameters"] for condition in conditions]
        if not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError("the numbers of parameters of its conditions are not numbers")
        if sum(sizes) != parameters.size:
            raise ValueError(
                f"its conditions have {sum(sizes)} parameters, and the file {parameters.size}"
            )
        pieces = np.split(parameters, np.cumsum(sizes)[:-1])
        adaptors = []
        for condition, own in zip(conditions, pieces, strict=True):
            if condition["kind"] not in Adaptor.kinds:
                raise ValueError(f"it has an adaptor of the unknown kind {condition['kind']!r}")
            kind = Adaptor.kinds[condition["kind"]]
            adaptors.append(kind.from_settings(condition["settings"], own))
        return cls(
            router=Router.from_settings(settings["router"]),
            adaptors=adaptors,
            words=[condition["words"] for condition in conditions],
            shares=[condition["share"] for condition in conditions],
        )

    def as_module(self) -> nn.Module:
        modules = [(adaptor.as_module(), places) for adaptor, places in self._distinct()]
        return RoutedModule(self.router, modules)

    def _distinct(self) -> list[tuple[Adaptor, list[int]]]:
        """The adaptors that change images, each once, with the conditions that use it."""
        users: dict[Any, tuple[Adaptor, list[int]]] = {}
        for place, adaptor in enumerate(self.adaptors):
            same = (adaptor.kind, json.dumps(adaptor.settings), adaptor.parameters.tobytes())
            users.setdefault(same, (adaptor, []))[1].append(place)
        return [user for user in users.values() if not isinstance(user[0], Identity)]

    def to_onnx(self, path: str | Path, *, opset: int = OPSET) -> float:
        """Write an ONNX file that can run in front of any model: router and all adaptors.

        It is verified as that of any adaptor. The random images of this check are unfamiliar to
        most routers, so each adaptor is also verified by itself.

        Parameters
        ----------
        path : str or Path
        opset : int, default 17
            Version of the ONNX operators, 12 to 20.

        Returns
        -------
        float : the largest difference from PyTorch, in pixels of [0, 1]
        """
        with TemporaryDirectory() as folder:
            alone = Path(folder) / "adaptor.onnx"
            deviations = [adaptor.to_onnx(alone, opset=opset) for adaptor, _ in self._distinct()]
        return max([super().to_onnx(path, opset=opset), *deviations])

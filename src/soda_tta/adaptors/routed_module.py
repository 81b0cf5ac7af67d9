"""A router and the adaptors of its conditions as one PyTorch module, for export."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from soda_tta.conditions.router import EQUAL, Router
from soda_tta.conditions.statistics import measured

UNFAMILIAR = -1


class RoutedModule(nn.Module):
    """Computes what every adaptor makes of an image, and keeps that of its own condition.

    Parameters
    ----------
    router : Router
    modules : list of (nn.Module, list of int)
        Each adaptor with its conditions; images of other conditions are left as they are.
    """

    def __init__(self, router: Router, modules: Sequence[tuple[nn.Module, list[int]]]) -> None:
        super().__init__()
        self.router = RouterModule(router)
        self.adaptors = nn.ModuleList([module for module, _ in modules])
        self.places = [places for _, places in modules]

    def forward(self, images: Tensor) -> Tensor:
        conditions = self.router(images)[:, None]
        adapted = images
        for adaptor, places in zip(self.adaptors, self.places, strict=True):
            own = (conditions == torch.tensor(places)).any(1)[:, None, None, None]
            adapted = torch.where(own, adaptor(images), adapted)
        return adapted


class RouterModule(nn.Module):
    """The condition of each image, or `UNFAMILIAR`: `Router` in PyTorch, by the same formulas.

    Both take the first of two equally likely conditions.
    """

    centre: Tensor
    emphasis: Tensor
    means: Tensor
    whitening: Tensor
    constants: Tensor
    members: Tensor

    def __init__(self, router: Router) -> None:
        super().__init__()
        mixture = router.mixture
        roots = np.linalg.cholesky(mixture.covariances)
        volumes = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constants = (
            np.log(mixture.weights) - volumes - mixture.means.shape[1] / 2 * math.log(2 * math.pi)
        )
        arrays = {
            "centre": router.centre,
            "emphasis": router.emphasis,
            "means": mixture.means[:, None],
            "whitening": np.linalg.inv(roots).transpose(0, 2, 1),
            "constants": constants[:, None],
            "members": np.eye(len(router))[router.owners].T,
        }
        for name, array in arrays.items():
            self.register_buffer(name, torch.tensor(array, dtype=torch.float64))
        self.radius = float(router.radius)

    def forward(self, images: Tensor) -> Tensor:
        standard = (measured(images) - self.centre) @ self.emphasis
        squares = ((standard - self.means) @ self.whitening).square().sum(2)
        densities = self.constants - squares / 2
        shares = torch.exp(densities - densities.amax(0, keepdim=True))
        shares = self.members @ (shares / shares.sum(0, keepdim=True))
        likely = shares >= shares.amax(0, keepdim=True) - EQUAL
        familiar = squares.amin(0).sqrt() <= self.radius * (1 + EQUAL)
        return torch.where(familiar, likely.float().argmax(0), UNFAMILIAR)

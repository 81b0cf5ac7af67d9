"""Per-image directions: the box answers image by image, and the paper adds up what it might have kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.search.descent import Descent
from soda_tta.search.steps import Rule
from soda_tta.types import Array

DIRECTIONS = 3  # the stream of randomness of every search that draws directions


@dataclass(frozen=True, kw_only=True)
class PerImage:
    """Each of `groups` groups of a batch is moved along a Gaussian direction of its own: two queries an image.

    The loss is linear in what each image adds to it, to first order around the answers of its batch, so the slopes
    along as many directions as there are groups come back for the price of one.
    """

    groups: int = 64
    mu: float = 1e-3
    sigma: float = 0.1

    def __post_init__(self) -> None:
        if not (self.groups >= 1 and self.mu > 0 and self.sigma > 0):
            raise MethodError("per-image search needs at least one group, mu > 0 and sigma > 0.")

    @property
    def candidates(self) -> int:
        """Queries an image and step: at the point itself, and along its own direction."""
        return 2

    def start(self, theta: Array, step: Rule, seed: int) -> PerImageSearch:
        return PerImageSearch(self, theta, step, seed)


class PerImageSearch(Descent):
    """`ask()` for the point and a point a group; `tell` the loss at the point and by how much each group changed it."""

    def __init__(self, settings: PerImage, theta: Array, step: Rule, seed: int) -> None:
        super().__init__(theta, step)
        self.settings, self.seed = settings, seed

    def ask(self) -> Array:
        return np.concatenate(
            [self.theta[None], self.theta + self.settings.mu * self._directions()]
        )

    def tell(self, values: Any, known: Any = 0.0) -> None:
        """The first value is the loss; the others are the changes of it, a group each; `known` as in multi-point."""
        self.move(self.estimate(values) + known)

    def estimate(self, values: Any) -> Array:
        """The sum over the groups of slope times direction: its mean is sigma^2 times the gradient."""
        changes = np.asarray(values, np.float64)[1:]
        if len(changes) > self.settings.groups:
            raise ValueError(f"{len(changes)} changes for {self.settings.groups} groups.")
        gradient: Array = changes @ self._directions()[: len(changes)] / self.settings.mu
        return gradient

    def _directions(self) -> Array:
        generator = np.random.default_rng([self.seed, DIRECTIONS, self.count])
        return self.settings.sigma * generator.standard_normal(
            (self.settings.groups, self.theta.size)
        )

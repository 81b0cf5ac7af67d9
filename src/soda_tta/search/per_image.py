"""Per-image directions: keep the responses apart that the paper adds up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.randomness import RandomStream, generator
from soda_tta.search.descent import Descent
from soda_tta.search.search import Wants
from soda_tta.search.steps import Rule
from soda_tta.settings import setting
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class PerImage:
    """Move each of `groups` groups of a batch along a Gaussian direction of its own.

    The loss is linear in what each image contributes, to first order around the responses of its
    batch. So the slopes along as many directions as there are groups cost two queries per image.
    """

    groups: int = setting(
        64, "groups of a batch, each along its own direction for two queries per image"
    )
    mu: float = setting(
        1e-3, "distance of a probe from the current point; too small drowns in rounding"
    )
    sigma: float = setting(
        0.1, "deviation of the directions; the estimate is sigma squared times the gradient"
    )

    follows_gradient: ClassVar[bool] = True
    candidates: ClassVar[int] = 2  # queries per image and step: at the point, and along a direction

    def __post_init__(self) -> None:
        if not (self.groups >= 1 and self.mu > 0 and self.sigma > 0):
            raise MethodError("per-image search needs groups >= 1, mu > 0 and sigma > 0.")

    @property
    def probe_length(self) -> float:
        """How far from the current point a probe is."""
        return self.mu

    def start(
        self, theta: Array, *, step: Rule, units: Array | float = 1.0, seed: int = 0
    ) -> PerImageSearch:
        """Begin a search at `theta`."""
        return PerImageSearch(self, theta, step, seed)


class PerImageSearch(Descent):
    """`ask()` for the point and one point per group; `tell` the loss and its changes by group."""

    wants: ClassVar[Wants] = "group changes"
    adds_known_slope: ClassVar[bool] = True

    def __init__(self, settings: PerImage, theta: Array, step: Rule, seed: int) -> None:
        super().__init__(theta, step)
        self.settings = settings
        self.seed = seed

    def ask(self) -> Array:
        """The current point, then one point per group."""
        shifted = self.theta + self.settings.mu * self._directions()
        return np.concatenate([self.theta[None], shifted])

    def tell(self, values: Any, known_slope: Any = 0.0) -> None:
        """Move by the loss (the first value) and the change that each group makes to it."""
        self.move(self.estimate(values) + known_slope)

    def estimate(self, values: Any) -> Array:
        """The sum of slope times direction: on average sigma^2 times the gradient."""
        changes = np.asarray(values, np.float64)[1:]
        if len(changes) > self.settings.groups:
            raise ValueError(f"{len(changes)} changes for {self.settings.groups} groups.")
        gradient: Array = changes @ self._directions()[: len(changes)] / self.settings.mu
        return gradient

    def _directions(self) -> Array:
        random = generator(self.seed, RandomStream.DIRECTIONS, self.count)
        shape = (self.settings.groups, self.theta.size)
        return self.settings.sigma * random.standard_normal(shape)

"""Multi-point zeroth-order search: a gradient from function values alone (paper, Eq. 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.search.descent import Descent
from soda_tta.search.steps import Rule
from soda_tta.types import Array

DIRECTIONS, SUBSPACE = 3, 4  # streams of randomness, beside those of the loop


@dataclass(frozen=True, kw_only=True)
class MultiPoint:
    """Forward differences along `directions` Gaussian vectors of deviation `sigma`, `mu` apart.

    The estimate is not divided by sigma^2: its mean is sigma^2 times the gradient. The released code draws with
    sigma = 0.1, so that the paper's lr = 1e-3 acts like 1e-5 on the true gradient.

    Three things the paper does not do: `central` looks both ways along each direction, which removes the error of
    second order and doubles the price; `orthogonal` directions never look the same way twice; with a `subspace` all
    directions lie in that many random dimensions, drawn once, so that five of them see more of it.
    """

    directions: int = 5
    mu: float = 1e-3
    sigma: float = 0.1
    central: bool = False
    orthogonal: bool = False
    subspace: int = 0  # 0: the whole space

    def __post_init__(self) -> None:
        if not (self.directions >= 1 and self.mu > 0 and self.sigma > 0 and self.subspace >= 0):
            raise MethodError(
                "multi-point search needs directions (q) >= 1, mu > 0, sigma > 0 and subspace >= 0."
            )

    @property
    def candidates(self) -> int:
        """Queries an image and step: the point itself, and one or two for each direction."""
        return 1 + self.directions * (2 if self.central else 1)

    def start(self, theta: Array, step: Rule, seed: int) -> MultiPointSearch:
        return MultiPointSearch(self, theta, step, seed)


class MultiPointSearch(Descent):
    """`ask()` for the points to evaluate, `tell(losses)` to move. It never sees the box.

    The directions of step t are a function of (seed, t) alone, so a search picked up from its saved vectors
    continues bit for bit.

    >>> from soda_tta.search.steps import SGD
    >>> search = MultiPoint(directions=50, sigma=1.0).start(np.ones(3), SGD(lr=0.1, momentum=0), seed=0)
    >>> for _ in range(100): search.tell([float(point @ point) for point in search.ask()])
    >>> bool(np.abs(search.theta).max() < 1e-3)
    True
    """

    def __init__(self, settings: MultiPoint, theta: Array, step: Rule, seed: int) -> None:
        super().__init__(theta, step)
        self.settings, self.seed = settings, seed

    def ask(self) -> Array:
        """The current point, then one point a direction, then with `central` those on its other side."""
        steps = self.settings.mu * self._directions()
        return np.concatenate(
            [self.theta[None], self.theta + steps, *([self.theta - steps] * self.settings.central)]
        )

    def tell(self, losses: Any, known: Any = 0.0) -> None:
        """Move by the losses of the points last asked for, in the same order; `known` is a part of the gradient that
        need not be estimated, and is not in their differences."""
        self.move(self.estimate(losses) + known)

    def estimate(self, losses: Any) -> Array:
        """Eq. 1: the mean of [f(theta + mu u) - f(theta)] / mu along u."""
        losses = np.asarray(losses, np.float64)
        if losses.shape != (self.settings.candidates,):
            raise ValueError(f"{losses.shape} losses for {self.settings.candidates} candidates.")
        ahead, behind = (
            losses[1 : 1 + self.settings.directions],
            losses[1 + self.settings.directions :],
        )
        slopes = (
            (ahead - behind) / (2 * self.settings.mu)
            if self.settings.central
            else (ahead - losses[0]) / self.settings.mu
        )
        gradient: Array = slopes @ self._directions() / self.settings.directions
        return gradient

    def _directions(self) -> Array:
        generator = np.random.default_rng([self.seed, DIRECTIONS, self.count])
        dimensions = self.settings.subspace or self.theta.size
        drawn = generator.standard_normal((self.settings.directions, dimensions))
        if self.settings.orthogonal:
            drawn = orthogonalised(drawn)
        if self.settings.subspace:
            drawn = drawn @ self._basis
        return self.settings.sigma * drawn

    @cached_property
    def _basis(self) -> Array:
        """Rows of about unit length per coordinate, so that a direction is as long as one of the whole space."""
        generator = np.random.default_rng([self.seed, SUBSPACE])
        rows = generator.standard_normal((self.settings.subspace, self.theta.size))
        basis: Array = rows / np.sqrt(self.settings.subspace)
        return basis


def orthogonalised(directions: Array) -> Array:
    """The same number of directions at right angles, each as long as it was; beyond the dimension a new set begins."""
    count, dimensions = directions.shape
    pieces = [directions[start : start + dimensions] for start in range(0, count, dimensions)]
    turned = np.concatenate([np.linalg.qr(piece.T)[0].T for piece in pieces])
    result: Array = turned * np.linalg.norm(directions, axis=1, keepdims=True)
    return result

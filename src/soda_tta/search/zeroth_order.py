"""Multi-point zeroth-order search: a gradient from function values alone (paper, Eq. 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
class MultiPoint:
    """Forward differences along Gaussian directions (Eq. 1).

    The estimate is not divided by sigma^2: on average it is sigma^2 times the gradient. The
    released code draws with sigma = 0.1, so the paper's lr = 1e-3 acts like 1e-5 on the true
    gradient.

    `central`, `orthogonal` and `subspace` are not in the paper. Central differences remove the
    second-order error at twice the price. Orthogonal directions never probe the same way twice.
    With a subspace, all directions lie in that many random dimensions, drawn once, so that five of
    them cover more of it.
    """

    directions: int = setting(
        5, "random directions per gradient estimate; each costs one query per image and step"
    )
    mu: float = setting(
        1e-3, "distance of a probe from the current point; too small drowns in rounding"
    )
    sigma: float = setting(
        0.1, "deviation of the directions; the estimate is sigma squared times the gradient"
    )
    central: bool = setting(
        False, "probe both ways along a direction: more exact, at twice the price"
    )
    orthogonal: bool = setting(False, "draw directions at right angles to one another")
    subspace: int = setting(
        0, "random dimensions in which all directions lie; 0 for the whole space"
    )

    follows_gradient: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive = self.directions >= 1 and self.mu > 0 and self.sigma > 0
        if not (positive and self.subspace >= 0):
            raise MethodError(
                "multi-point search needs directions (q) >= 1, mu > 0, sigma > 0 and subspace >= 0."
            )

    @property
    def candidates(self) -> int:
        """Queries per image and step: the point itself, and one or two per direction."""
        return 1 + self.directions * (2 if self.central else 1)

    @property
    def probe_length(self) -> float:
        """How far from the current point a probe is."""
        return self.mu

    def start(
        self, theta: Array, *, step: Rule, units: Array | float = 1.0, seed: int = 0
    ) -> MultiPointSearch:
        """Begin a search at `theta`."""
        return MultiPointSearch(self, theta, step, seed)


class MultiPointSearch(Descent):
    """`ask()` for the points to evaluate, `tell(losses)` to move.

    The directions of step t are a function of (seed, t) alone, so a search that is restored from
    its state continues bit for bit.

    Examples
    --------
    >>> from soda_tta.search.steps import SGD
    >>> settings = MultiPoint(directions=50, sigma=1.0)
    >>> search = settings.start(np.ones(3), step=SGD(lr=0.1, momentum=0), seed=0)
    >>> for _ in range(100):
    ...     search.tell([float(point @ point) for point in search.ask()])
    >>> bool(np.abs(search.theta).max() < 1e-3)
    True
    """

    wants: ClassVar[Wants] = "losses"
    adds_known_slope: ClassVar[bool] = True

    def __init__(self, settings: MultiPoint, theta: Array, step: Rule, seed: int) -> None:
        super().__init__(theta, step)
        self.settings = settings
        self.seed = seed

    def ask(self) -> Array:
        """The current point, one point per direction and, if central, those on the other side."""
        steps = self.settings.mu * self._directions()
        points = [self.theta[None], self.theta + steps]
        if self.settings.central:
            points.append(self.theta - steps)
        return np.concatenate(points)

    def tell(self, values: Any, known_slope: Any = 0.0) -> None:
        """Move by the losses of the points of the last `ask`, in the same order.

        `known_slope` is a part of the gradient that need not be estimated; it must not be part of
        the losses' differences.
        """
        self.move(self.estimate(values) + known_slope)

    def estimate(self, losses: Any) -> Array:
        """Eq. 1: the mean of [f(theta + mu u) - f(theta)] / mu along u."""
        losses = np.asarray(losses, np.float64)
        if losses.shape != (self.settings.candidates,):
            raise ValueError(f"{losses.shape} losses for {self.settings.candidates} candidates.")
        ahead = losses[1 : 1 + self.settings.directions]
        behind = losses[1 + self.settings.directions :]
        if self.settings.central:
            slopes = (ahead - behind) / (2 * self.settings.mu)
        else:
            slopes = (ahead - losses[0]) / self.settings.mu
        gradient: Array = slopes @ self._directions() / self.settings.directions
        return gradient

    def _directions(self) -> Array:
        random = generator(self.seed, RandomStream.DIRECTIONS, self.count)
        dimensions = self.settings.subspace or self.theta.size
        drawn = random.standard_normal((self.settings.directions, dimensions))
        if self.settings.orthogonal:
            drawn = orthogonalised(drawn)
        if self.settings.subspace:
            drawn = drawn @ self._basis
        return self.settings.sigma * drawn

    @cached_property
    def _basis(self) -> Array:
        """Rows scaled so that directions are as long as without a subspace."""
        random = generator(self.seed, RandomStream.SUBSPACE)
        rows = random.standard_normal((self.settings.subspace, self.theta.size))
        basis: Array = rows / np.sqrt(self.settings.subspace)
        return basis


def orthogonalised(directions: Array) -> Array:
    """The same number of directions at right angles, each as long as before.

    Where there are more directions than dimensions, a new orthogonal set begins.
    """
    count, dimensions = directions.shape
    pieces = [directions[start : start + dimensions] for start in range(0, count, dimensions)]
    turned = np.concatenate([np.linalg.qr(piece.T)[0].T for piece in pieces])
    result: Array = turned * np.linalg.norm(directions, axis=1, keepdims=True)
    return result

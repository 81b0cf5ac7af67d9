"""Evolution: CMA-ES and its diagonal form, as ask and tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from cmaes import CMA, SepCMA

from soda_tta.errors import RecipeError
from soda_tta.search.descent import Array


@dataclass(frozen=True, kw_only=True)
class Evolution:
    """CMA-ES with `population` points a generation, its first deviation `sigma` units of each parameter.

    `diagonal` learns no correlations: for hundreds of parameters and more.
    """

    population: int = 12
    sigma: float = 0.3
    diagonal: bool = False

    def __post_init__(self) -> None:
        if not (self.population >= 4 and self.sigma > 0):
            raise RecipeError("evolution needs a population of at least 4 and sigma > 0.")

    @property
    def candidates(self) -> int:
        """Queries an image and generation."""
        return self.population

    def start(self, theta: Array, units: Array | float = 1.0, seed: int = 0) -> EvolutionSearch:
        return EvolutionSearch(self, theta, units, seed)


class EvolutionSearch:
    """`ask()` for a generation, `tell(losses)` of it; `theta` is the mean of the search distribution.

    >>> search = Evolution().start(np.ones(5), seed=1)
    >>> for _ in range(80): search.tell([float(point @ point) for point in search.ask()])
    >>> bool(np.abs(search.theta).max() < 1e-2)
    True
    """

    def __init__(self, numbers: Evolution, theta: Array, units: Array | float, seed: int) -> None:
        self.numbers, self.units = numbers, np.broadcast_to(np.asarray(units, np.float64), np.shape(theta))
        kind: Any = SepCMA if numbers.diagonal else CMA
        self.optimiser = kind(
            mean=np.asarray(theta, np.float64) / self.units,
            sigma=numbers.sigma,
            population_size=numbers.population,
            seed=seed,
        )
        self.points: list[Array] = []

    @property
    def theta(self) -> Array:
        mean: Array = self.optimiser._mean * self.units  # SepCMA shows its mean under no other name
        return mean

    def ask(self) -> Array:
        self.points = [self.optimiser.ask() for _ in range(self.numbers.population)]
        return np.array(self.points) * self.units

    def tell(self, losses: Any) -> None:
        """Losses of the generation last asked for, in the same order."""
        self.optimiser.tell([(point, float(loss)) for point, loss in zip(self.points, losses, strict=True)])

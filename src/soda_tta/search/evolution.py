"""Evolution: CMA-ES and its diagonal form, as ask and tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from cmaes import CMA, SepCMA

from soda_tta.errors import MethodError
from soda_tta.types import Array

MOST_CORRELATED = 1000  # parameters; a generation then decomposes a matrix of a million numbers


@dataclass(frozen=True, kw_only=True)
class Evolution:
    """CMA-ES with `population` points a generation, its first deviation `sigma` units of each parameter.

    `diagonal` learns no correlations: for hundreds of parameters and more. It follows no gradient, so it has no
    learning rate: it lengthens and shortens its deviation by itself.
    """

    population: int = 12
    sigma: float = 0.1
    diagonal: bool = False

    def __post_init__(self) -> None:
        if not (self.population >= 4 and self.sigma > 0):
            raise MethodError("evolution needs a population of at least 4 and sigma > 0.")

    @property
    def candidates(self) -> int:
        """Queries an image and step of the training loop: at the mean, and a generation."""
        return 1 + self.population

    def start(self, theta: Array, units: Array | float = 1.0, seed: int = 0) -> EvolutionSearch:
        return EvolutionSearch(self, theta, units, seed)

    def followed(
        self, theta: Array, units: Array | float = 1.0, seed: int = 0
    ) -> FollowedEvolution:
        """The same for the training loop."""
        return FollowedEvolution(self, theta, units, seed)


class EvolutionSearch:
    """`ask()` for a generation, `tell(losses)` of it; `theta` is the mean of the search distribution.

    >>> search = Evolution().start(np.ones(5), seed=1)
    >>> for _ in range(80): search.tell([float(point @ point) for point in search.ask()])
    >>> bool(np.abs(search.theta).max() < 1e-2)
    True
    """

    def __init__(self, settings: Evolution, theta: Array, units: Array | float, seed: int) -> None:
        self.settings, self.units = (
            settings,
            np.broadcast_to(np.asarray(units, np.float64), np.shape(theta)),
        )
        if not settings.diagonal and np.size(theta) > MOST_CORRELATED:
            raise MethodError(
                f"evolution would learn the correlations of {np.size(theta):,} parameters and can those of "
                f"{MOST_CORRELATED:,}; leave them out (diagonal=true)."
            )
        self.first, self.seed = np.asarray(theta, np.float64) / self.units, seed % 2**32
        self.optimiser = self._begin()
        self.points: list[Array] = []

    def _begin(self) -> Any:
        kind: Any = SepCMA if self.settings.diagonal else CMA
        return kind(
            mean=self.first.copy(),  # moved in place
            sigma=self.settings.sigma,
            population_size=self.settings.population,
            seed=self.seed,
        )

    @property
    def theta(self) -> Array:
        mean: Array = self.optimiser._mean * self.units  # SepCMA shows its mean under no other name
        return mean

    @property
    def length(self) -> float:
        """The deviation of this generation, in units."""
        return float(self.optimiser._sigma)

    def ask(self) -> Array:
        """The generation; the same until its losses are told."""
        self.points = self.points or [self.optimiser.ask() for _ in range(self.settings.population)]
        return np.array(self.points) * self.units

    def tell(self, losses: Any) -> None:
        """Losses of the generation, in the order of `ask`."""
        EvolutionSearch.ask(self)
        told = [(point, float(loss)) for point, loss in zip(self.points, losses, strict=True)]
        if (
            len({loss for _, loss in told}) > 1
        ):  # equal losses, as of a single image, give no direction to go in
            self.optimiser.tell(told)
        self.points = []


class FollowedEvolution(EvolutionSearch):
    """The same with its mean asked for first: a loop follows the loss there, the generation pays no heed to it.

    All it has learned follows from the seed and from what it was told, so that is all it keeps: picked up again, it
    asks and is told from the first generation on, and continues bit for bit.
    """

    def __init__(self, settings: Evolution, theta: Array, units: Array | float, seed: int) -> None:
        super().__init__(settings, theta, units, seed)
        self.told: list[tuple[float, ...]] = []

    @property
    def count(self) -> int:
        return len(self.told)

    def ask(self) -> Array:
        return np.concatenate([self.theta[None], super().ask()])

    def tell(self, losses: Any) -> None:
        """Losses at the mean and of the generation, in the order of `ask`."""
        _, *generation = losses
        super().tell(generation)
        self.told.append(tuple(float(loss) for loss in losses))

    def state(self) -> dict[str, Array]:
        """Everything that must be kept to continue, by name."""
        return {"told": np.array(self.told, np.float64).reshape(-1, self.settings.candidates)}

    def restore(self, state: dict[str, Array]) -> None:
        self.optimiser, self.points, self.told = self._begin(), [], []
        for losses in state["told"]:
            self.tell(losses)

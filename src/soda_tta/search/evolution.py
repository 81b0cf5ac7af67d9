"""Evolution: CMA-ES and its diagonal form, as ask and tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from cmaes import CMA, SepCMA

from soda_tta.errors import MethodError
from soda_tta.search.search import Wants
from soda_tta.search.steps import Rule
from soda_tta.settings import setting
from soda_tta.types import Array

MOST_CORRELATED = 1000  # parameters: a generation then decomposes a matrix of a million entries


@dataclass(frozen=True, kw_only=True)
class Evolution:
    """CMA-ES. It follows no gradient, so it has no learning rate: it adapts its own deviation."""

    population: int = setting(12, "candidates per generation of CMA-ES")
    sigma: float = setting(0.1, "first deviation, in units of each parameter")
    diagonal: bool = setting(False, "learn no correlations: for hundreds of parameters and more")

    follows_gradient: ClassVar[bool] = False
    probe_length: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not (self.population >= 4 and self.sigma > 0):
            raise MethodError("evolution needs population >= 4 and sigma > 0.")

    @property
    def candidates(self) -> int:
        """Queries per image and step: at the mean, and one per member of a generation."""
        return 1 + self.population

    def start(
        self, theta: Array, *, step: Rule | None = None, units: Array | float = 1.0, seed: int = 0
    ) -> EvolutionSearch:
        """Begin a search with mean `theta`; `step` is ignored."""
        return EvolutionSearch(self, theta, units, seed)


class EvolutionSearch:
    """`ask()` for the mean and a generation, `tell(losses)` of both.

    The loss at the mean is for the caller to report; the generation ignores it. Everything
    that was learned follows from the seed and from the losses told, so that is the whole state: a
    restored search replays them and continues bit for bit.

    Examples
    --------
    >>> search = Evolution().start(np.ones(5), seed=1)
    >>> for _ in range(80):
    ...     search.tell([float(point @ point) for point in search.ask()])
    >>> bool(np.abs(search.theta).max() < 1e-2)
    True
    """

    wants: ClassVar[Wants] = "losses"
    adds_known_slope: ClassVar[bool] = False  # it follows no gradient

    def __init__(self, settings: Evolution, theta: Array, units: Array | float, seed: int) -> None:
        if not settings.diagonal and np.size(theta) > MOST_CORRELATED:
            raise MethodError(
                f"evolution cannot learn the correlations of {np.size(theta):,} parameters, only "
                f"of {MOST_CORRELATED:,}; leave them out with diagonal=True."
            )
        self.settings = settings
        self.units = np.broadcast_to(np.asarray(units, np.float64), np.shape(theta))
        self.first_mean = np.asarray(theta, np.float64) / self.units
        self.seed = seed % 2**32
        self._begin()

    def _begin(self) -> None:
        kind: Any = SepCMA if self.settings.diagonal else CMA
        self.optimiser = kind(
            mean=self.first_mean.copy(),  # the optimiser moves it in place
            sigma=self.settings.sigma,
            population_size=self.settings.population,
            seed=self.seed,
        )
        self.generation: list[Array] = []
        self.losses: list[tuple[float, ...]] = []

    @property
    def theta(self) -> Array:
        """The mean of the search distribution."""
        mean: Array = self.optimiser.mean * self.units
        return mean

    @property
    def length(self) -> float:
        """The deviation of this generation, in units."""
        return float(self.optimiser._sigma)

    @property
    def count(self) -> int:
        """Generations so far."""
        return len(self.losses)

    def ask(self) -> Array:
        """The mean, then the generation; the same until its losses are told."""
        if not self.generation:
            self.generation = [self.optimiser.ask() for _ in range(self.settings.population)]
        return np.concatenate([self.theta[None], np.array(self.generation) * self.units])

    def tell(self, values: Any, known_slope: Any = 0.0) -> None:
        """Losses at the mean (ignored) and of the generation, in the order of `ask`."""
        losses = tuple(float(loss) for loss in values)
        if len(losses) != self.settings.candidates:
            raise ValueError(f"{len(losses)} losses for {self.settings.candidates} candidates.")
        self.ask()
        pairs = list(zip(self.generation, losses[1:], strict=True))
        if len(set(losses[1:])) > 1:  # equal losses, as of a single image, give no direction
            self.optimiser.tell(pairs)
        self.generation = []
        self.losses.append(losses)

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        return {"losses": np.array(self.losses, np.float64).reshape(-1, self.settings.candidates)}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self._begin()
        for losses in state["losses"]:
            self.tell(losses)

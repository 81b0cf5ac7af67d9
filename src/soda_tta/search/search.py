"""What every search offers: `ask()` and `tell(...)`. A search never calls a box."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol

from soda_tta.search.steps import Rule
from soda_tta.types import Array

# What a search wants to be told about the points it asked for:
# "losses": the loss at every point;
# "group changes": the loss at the first point, then how much each group of images changes it;
# "gradient": the gradient of the loss at the one point.
Wants = Literal["losses", "group changes", "gradient"]


class Search(Protocol):
    """A search in progress. It can be paused between any two calls and picked up again.

    Budget, batching, failures and rate limits stay with the caller.
    """

    wants: ClassVar[Wants]
    # Whether `tell` takes a part of the gradient that is known and need not be estimated.
    adds_known_slope: ClassVar[bool]

    @property
    def theta(self) -> Array:
        """The current point."""

    @property
    def length(self) -> float:
        """How far the next step goes: the learning rate or, of evolution, the deviation."""

    @property
    def count(self) -> int:
        """Steps taken so far."""

    def ask(self) -> Array:
        """The points to evaluate, one per row, the current point first."""

    def tell(self, values: Any, known_slope: Any = 0.0) -> None:
        """Move, given what the search wants to be told about the points of the last `ask`."""

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""


class SearchSettings(Protocol):
    """The settings of a search: a frozen dataclass that starts searches."""

    @property
    def candidates(self) -> int:
        """Queries per image and step."""

    @property
    def follows_gradient(self) -> bool:
        """Whether it makes steps along a gradient, so that lr and step apply."""

    @property
    def probe_length(self) -> float | None:
        """How far from the current point a probe is (mu); None if nothing is probed."""

    def start(self, theta: Array, *, step: Rule, units: Array | float, seed: int) -> Search:
        """Begin a search.

        Parameters
        ----------
        theta : the point to begin at.
        step : how a gradient becomes a step; a search that follows no gradient ignores it.
        units : a typical size of each parameter, for searches that need one.
        seed : everything random follows from it.
        """

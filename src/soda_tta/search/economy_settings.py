"""What the search of soda-e needs to know apart from the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soda_tta.search.evolution import Evolution
from soda_tta.search.pursuit import Pursuit
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class EconomySettings:
    """What an `EconomySearch` needs apart from the data.

    Parameters
    ----------
    pursuit, evolution : the settings of the two stages.
    moves : the moves that pursuit may make, one per row.
    units : first deviation of each parameter in evolution, relative to sigma.
    batch : images per round.
    queries : the most queries to spend.
    loss_of_each : probabilities of a batch, and the places of its images, to one loss per
        independent image; pursuit minimises their mean.
    loss : probabilities of a batch to one loss; evolution minimises it.
    seed : everything random follows from it.
    kept_back : queries that evolution must leave unspent.
    starts : parameters that helped elsewhere, one vector per row; pursuit begins with a round on
        them.
    """

    pursuit: Pursuit
    evolution: Evolution
    moves: Array
    units: Array
    batch: int
    queries: int
    loss_of_each: Callable[[Array, Array], Array]
    loss: Callable[[Array], float]
    seed: int = 0
    kept_back: int = 0
    starts: Array | None = None

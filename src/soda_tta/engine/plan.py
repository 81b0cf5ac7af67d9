"""What a run will cost, before it spends anything."""

from __future__ import annotations

import math
from dataclasses import dataclass

from soda_tta.errors import BudgetError
from soda_tta.methods import Method

# Rivals for lr="auto" are compared after these shares of the epochs, and so many of them go on. A large rate is ahead
# at first and overtaken later; to wait for half of the epochs is a compromise (benchmarks/rate_choice.py).
RUNGS = ((0.05, 3), (0.20, 2), (0.50, 1))


@dataclass(frozen=True)
class Plan:
    """Epochs and queries of a run. `rungs`: the epochs at which learning rates are compared, if there are several."""

    images: int
    epochs: int
    rungs: tuple[int, ...]
    queries: dict[str, int]  # by purpose
    limit: int | None  # the hard limit in queries
    shortened: bool  # the budget does not reach for the whole recipe
    counted: int | None = (
        None  # the epoch of the last step told of, where it is another; 0: nobody knows
    )

    @property
    def total(self) -> int:
        return sum(self.queries.values())

    @property
    def queries_per_image(self) -> float:
        return self.total / self.images

    @property
    def learns(self) -> bool:
        return bool(self.queries.get("probe", 0) + self.queries.get("tune", 0))


def plan_run(recipe: Method, images: int, budget: float | None = None) -> Plan:
    """The plan of a recipe for so many images and at most `budget` queries an image, all purposes together.

    >>> from soda_tta.methods import all_methods
    >>> plan_run(all_methods()["soda"], images=10_000).queries_per_image   # 150 x 6, a first look and the answer
    902.0
    """
    if budget is not None and not math.isfinite(budget):
        raise BudgetError(f"a budget of {budget} queries an image is no number to keep to.")
    limit = None if budget is None else math.floor(budget * images + 1e-9)
    if limit is not None and limit < images:
        raise BudgetError(
            f"a budget of {budget:g} queries an image cannot answer each of {images:,} images once; give at least 1."
        )
    if isinstance(recipe, Method):
        return _plan_procedure(recipe, images, limit)
    passes = {"select": images, "evaluate": images}
    learning = None if limit is None else limit - 2 * images
    batch = min(recipe.batch, images)
    if (
        recipe.adaptor is None
        or not recipe.epochs
        or (learning is not None and learning < batch * recipe.search.candidates)
    ):
        return Plan(
            images,
            0,
            (),
            {"select": images},
            limit,
            recipe.adaptor is not None and bool(recipe.epochs),
        )
    cost = images * recipe.search.candidates  # of an epoch
    if len(recipe.learning_rates) < 2:
        wanted = recipe.epochs * cost
        spent = (
            wanted
            if learning is None
            else min(wanted, _whole_steps(learning, images, batch, recipe.search.candidates))
        )
        return Plan(
            images, math.ceil(spent / cost), (), {**passes, "probe": spent}, limit, spent < wanted
        )
    for epochs in range(recipe.epochs, 0, -1):
        rungs = tuple(max(1, math.ceil(share * epochs)) for share, _ in RUNGS)
        tune = cost * _epochs_of_rivals(len(recipe.learning_rates), rungs)
        probe = cost * (epochs - rungs[-1])
        if learning is None or tune + probe <= learning:
            queries = {**passes, "tune": tune, "probe": probe}
            return Plan(images, epochs, rungs, queries, limit, epochs < recipe.epochs)
    raise BudgetError(
        f"a budget of {budget:g} queries an image cannot compare {len(recipe.learning_rates)} learning rates; "
        "raise it or state one (--set lr=0.01)."
    )


def _epochs_of_rivals(rivals: int, rungs: tuple[int, ...]) -> int:
    """What all of them take together until one is left.

    >>> _epochs_of_rivals(5, (5, 20, 50))    # 5 x 5 + 3 x 15 + 2 x 30
    130
    """
    total = reached = 0
    for rung, (_, kept) in zip(rungs, RUNGS, strict=True):
        total += rivals * (rung - reached)
        rivals, reached = min(rivals, kept), rung
    return total


def _plan_procedure(recipe: Method, images: int, limit: int | None) -> Plan:
    queries = {"select": images, **recipe.within(images, limit)}
    needed = sum(queries.values())
    if limit is None or needed <= limit:
        nothing = len(queries) == 1 and bool(recipe.queries(images))
        return Plan(
            images,
            0 if nothing else recipe.epochs,
            (),
            queries,
            limit,
            nothing,
            recipe.counted(images),
        )
    if not recipe.elastic:
        raise BudgetError(
            f"{recipe.name} needs {needed / images:g} queries an image; raise the budget."
        )
    for purpose in ("probe", "evaluate"):  # it learns less, and then answers with its first look
        queries[purpose] -= (less := min(queries[purpose], needed - limit))
        needed -= less
    return Plan(images, recipe.epochs, (), queries, limit, True, recipe.counted(images))


def _whole_steps(learning: int, images: int, batch: int, candidates: int) -> int:
    """Of `learning` queries, as many as make up whole steps: full epochs, then full batches."""
    epochs, rest = divmod(learning, images * candidates)
    steps = min(rest // (batch * candidates), images // batch)
    return (epochs * images + steps * batch) * candidates

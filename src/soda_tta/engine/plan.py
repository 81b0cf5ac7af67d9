"""What a run will cost, before it spends anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from soda_tta.errors import BudgetError

MOST_IN_FLIGHT = 64  # images on their way to a model under a budget; also the margin
PURPOSES = {"clean": "clean images", "convention": "the input convention"}
MARGIN_SHARE = 0.02  # of the limit, at most


@dataclass(frozen=True)
class Plan:
    """The epochs and queries of a run."""

    images: int
    epochs: int  # 0: nothing is learned
    queries: dict[str, int]  # by purpose; the most there will be
    limit: int | None  # the most queries for the images; None for no limit
    shortened: bool = False  # the budget does not cover the whole method
    rungs: tuple[int, ...] = ()  # epochs at which learning rates are compared, if several compete
    last_epoch: int | None = None  # of the last step, if it is not `epochs`; 0 if unknown
    margin: int = 0  # queries within the limit that are left for requests without a response
    aside: int = 0  # queries within the budget that are not for the method, nor part of `limit`

    @property
    def planned_limit(self) -> int | None:
        """The limit without the margin: what the method planned with."""
        return None if self.limit is None else self.limit - self.margin

    @property
    def total(self) -> int:
        """All queries."""
        return sum(self.queries.values())

    @property
    def queries_per_image(self) -> float:
        """All queries, per image."""
        return self.total / self.images

    @property
    def hard_limit(self) -> int | None:
        """The most queries that may be sent, whatever for."""
        return None if self.limit is None else self.limit + self.aside

    def without_answers(self) -> Plan:
        """The same plan without the final pass."""
        kept = {name: count for name, count in self.queries.items() if name != "evaluate"}
        return replace(self, queries=kept)

    @property
    def learns(self) -> bool:
        """Whether queries are spent on learning."""
        return bool(self.queries.get("probe", 0) + self.queries.get("tune", 0))


class Plannable(Protocol):
    """A method, as far as planning is concerned."""

    def plan(self, images: int, limit: int | None) -> Plan:
        """What the method does with so many images and queries."""


def plan_run(
    method: Plannable,
    images: int,
    budget: float | None = None,
    aside: Mapping[str, int] | None = None,
    answers: str = "all",
) -> Plan:
    """Plan a method for a number of images under a budget.

    Parameters
    ----------
    method : the method.
    images : the number of images.
    budget : the most queries per image, all purposes together; None for no limit.
    aside : queries that are not for the method, by purpose, such as one for each clean image.
    answers : "none" for a run without a final pass.

    Examples
    --------
    >>> from soda_tta import find_method
    >>> plan_run(find_method("soda"), 10_000).queries_per_image  # 150 x 6, and two passes
    902.0
    """
    if budget is not None and not math.isfinite(budget):
        raise BudgetError(f"a budget of {budget} queries per image is not valid; give a number.")
    set_aside = [(purpose, count) for purpose, count in (aside or {}).items() if count]
    others = sum(count for _, count in set_aside)
    limit = None if budget is None else query_limit(budget, images)
    if limit is not None and limit < images:
        raise BudgetError(
            f"a budget of {budget:g} queries per image cannot answer each of {images:,} images "
            "once; give at least 1."
        )
    if limit is None:
        plan = method.plan(images, None)
    elif limit < images + others:
        listed = " and ".join(f"{count:,} for {PURPOSES[purpose]}" for purpose, count in set_aside)
        raise BudgetError(
            f"a budget of {budget:g} queries per image does not cover one pass over {images:,} "
            f"images and what comes first ({listed}); give at least "
            f"{(images + others) / images:.3g}."
        )
    else:
        plan = plan_within(method, images, limit - others)
    if answers == "none":
        plan = plan.without_answers()
    if not others:
        return plan
    return replace(plan, aside=others, queries={**plan.queries, **dict(set_aside)})


def plan_within(method: Plannable, images: int, limit: int) -> Plan:
    """Plan with a margin, so that a kill or a retry need not change what the method does.

    A budget that is just enough for the whole method, or for any learning, has no margin: the
    method is worth more.
    """
    margin = min(MOST_IN_FLIGHT, int(limit * MARGIN_SHARE))
    try:
        plan = method.plan(images, limit - margin)
    except BudgetError:
        return method.plan(images, limit)
    if plan.shortened or not plan.learns:
        without = method.plan(images, limit)
        if not (plan.learns and without.shortened):
            return without
    return replace(plan, limit=limit, margin=margin)


def query_limit(budget: float, images: int) -> int:
    """The queries that a budget per image allows for so many images.

    >>> query_limit(0.7, 10)
    7
    """
    return math.floor(budget * images + 1e-9)  # 0.7 * 10 may come out just below 7

"""What soda-e plans before the first query, and one search on some of the images."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.adaptors.parts import units
from soda_tta.data import Images
from soda_tta.engine.plan import Plan, query_limit
from soda_tta.engine.restored import RestoredImages
from soda_tta.engine.work import Work
from soda_tta.judging.scene_means import scene_means
from soda_tta.methods.economy_sizes import MOST_IMAGES, PLANNED_ROUNDS, EconomySizes, Sizes
from soda_tta.methods.tools import step_of
from soda_tta.objectives import information_against, mutual_information_against
from soda_tta.search import EconomySearch, EconomySettings
from soda_tta.types import Array

FEWEST_SCENES = 16  # to search on and to judge by; with fewer nothing could be concluded
FEWEST_MOVES = 3  # which a round of pursuit needs
TINY = 1e-9  # deviation of parameters that evolution must not move
FEWEST_OF_CONDITION = 100  # images; a smaller condition is not searched
MOST_HUNDREDTHS = 100_000  # of a query per image; images that need more are too few
MOST_SEARCHES = 4  # without a budget, more conditions share the queries of so many searches


@dataclass(frozen=True, kw_only=True)
class EconomyPlan(EconomySizes):
    """What follows from the settings of soda-e before the first query."""

    def plan(self, images: int, limit: int | None) -> Plan:
        """What the method does with so many images and at most `limit` queries."""
        if self.helper is not None:
            confirmation = self.confirmation(images, limit)
            return Plan(
                images,
                1,
                confirmation.queries,
                limit,
                shortened=confirmation.shortened,
                last_epoch=0,
            )
        sizes = self.sizes(images, limit)
        queries = {"select": images}
        if sizes is None:
            # Without a limit, too few images are the reason, and no budget would help.
            shortened = self.sizes(images, None) is not None
            queries |= self.views_without_search(images, limit)
            return Plan(images, 0, queries, limit, shortened=shortened, last_epoch=0)
        searches = 1 if limit is not None else self.most_searches(images)
        judged = min(images, searches * sizes.judged)
        queries |= {"probe": searches * sizes.probe, "judge": 2 * judged, "evaluate": images}
        more_views = self.views_within(images, limit) - 1
        if more_views:
            queries["view"] = more_views * images
        return Plan(images, 1, queries, limit, last_epoch=0)

    def most_searches(self, images: int) -> int:
        """How many whole searches a run without a budget may pay for: one per condition."""
        possible = min(MOST_SEARCHES, images // (2 * FEWEST_OF_CONDITION))
        if self.conditions != "auto":
            possible = min(possible, int(self.conditions))
        return max(1, possible)

    def outline(self, plan: Plan) -> str:
        """What the method will do within a plan, in words."""
        images = plan.images
        if self.helper is not None:
            return self.confirmation(images, plan.planned_limit).outline
        sizes = self.sizes(images, plan.planned_limit)
        if sizes is not None:
            first = self.search_cost(sizes.batch, rounds=1, recipes=sizes.recipes)
            each = self.search_cost(sizes.batch, rounds=2, recipes=sizes.recipes) - first
            rounds = 1 + max(0, sizes.probe - first) // each
            search = f"at most {rounds + sizes.recipes} rounds on {sizes.batch} images each"
            if sizes.recipes:
                search += ", the first on recipes"
            if rounds > PLANNED_ROUNDS:
                search += "; if they end early, CMA-ES may use the queries that are left"
            conditions = ""
            if self.most_searches(images) > 1:
                conditions = ", for each condition if there are several"
            return f"{search}; a verdict on {sizes.judged} others{conditions}"
        needed = self.least_budget(images, plan.aside)
        if plan.hard_limit is None or needed is None:
            return (
                f"{images} images are too few to search on and to judge by; "
                "the model's own answers are used."
            )
        return (
            f"{plan.hard_limit / images:.3g} queries per image are too few for a search; the "
            f"model's own answers are used. At least {needed:g} are needed."
        )

    def least_budget(self, images: int, aside: int = 0) -> float | None:
        """The least budget in hundredths that buys a search; None if the images are too few.

        Parameters
        ----------
        images : the number of images.
        aside : queries within the budget that are not for the method.
        """

        def is_enough(hundredths: int) -> bool:
            limit = query_limit(hundredths / 100, images)
            return self.sizes(images, limit - aside) is not None

        hundredths = bisect_left(range(MOST_HUNDREDTHS), True, key=is_enough)
        return None if hundredths == MOST_HUNDREDTHS else hundredths / 100

    def check(self, images: Images | None = None) -> None:
        """Refuse images that are too small for the bank, and a helper that cannot be used."""
        if self.helper is not None:
            super().check(images)
        if images is not None and self.sizes(len(images), None) is not None:
            Bank.for_size(images.size).build().prepare(images[slice(0, 1)])

    # -- running ---------------------------------------------------------------------------------

    def restored(
        self, adaptor: BankAdaptor, work: Work, free: Array, sizes: Sizes
    ) -> RestoredImages:
        """The images of the search."""
        parts = np.asarray(self.moves().any(axis=0))
        return RestoredImages(adaptor, work.images, free, parts, sizes.batch, MOST_IMAGES)

    def search(
        self,
        work: Work,
        restored: RestoredImages,
        scenes: Array,
        sizes: Sizes,
        found: Sequence[Array] = (),
    ) -> EconomySearch:
        """The search, at its beginning; what others found may be a start."""
        prior = self.shares(work)
        starts = self.starts()[: None if sizes.recipes else 0]
        if found:
            starts = np.concatenate([starts, found])
        # A repair that finds nothing to do costs no query.
        idle = restored.without_effect()
        moves = self.moves()
        useful = moves[~moves[:, idle].any(axis=1)]
        moves = useful if len(useful) >= FEWEST_MOVES else moves
        settings = EconomySettings(
            pursuit=self.pursuit(),
            evolution=self.evolution(),
            moves=moves,
            units=units() * moves.any(axis=0) + TINY,
            batch=min(sizes.batch, len(restored.places)),
            queries=sizes.probe,
            # A move is taken if its gain is beyond chance; near copies are not further evidence.
            loss_of_each=lambda rows, images: (
                -scene_means(information_against(rows, prior), scenes[images])
            ),
            loss=lambda rows: -mutual_information_against(rows, prior),
            seed=work.seed,
            kept_back=2 * sizes.judged,  # for a verdict on where pursuit ended
            starts=different(np.where(idle, 0.0, starts)),
        )
        return EconomySearch(settings, work.before[restored.places])

    def drive(
        self, search: EconomySearch, restored: RestoredImages, work: Work, reserve: int
    ) -> None:
        """Answer the questions of the search until it ends or the budget does."""
        box = work.asking("probe")
        while True:
            left = work.meter.left
            questions = search.ask_all(None if left is None else left - reserve)
            if not questions:
                return
            for answers in restored.answers_of(questions, box):
                search.ask()
                completed = search.tell(answers)
                if completed is not None:
                    work.record(step_of(completed, len(work.history) + 1))


def different(starts: Array) -> Array:
    """Starts in their order, without those that change nothing or repeat an earlier one."""
    _, first = np.unique(starts, axis=0, return_index=True)
    kept = starts[np.sort(first)]
    return kept[kept.any(axis=1)]

"""The settings of soda-e, how it divides a budget, and one search on some of the images."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.adaptors.parts import moves, units
from soda_tta.data import Images
from soda_tta.engine.plan import Plan
from soda_tta.engine.restored import RestoredImages
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.judging.scene_means import scene_means
from soda_tta.judging.verdict import FEWEST
from soda_tta.methods.answer_settings import CHECKED, AnswerSettings
from soda_tta.methods.economy_confirm import Confirmation
from soda_tta.methods.helped.helped import Helped
from soda_tta.methods.tools import step_of
from soda_tta.objectives import information_against, mutual_information_against
from soda_tta.search import EconomySearch, EconomySettings, Evolution, Pursuit
from soda_tta.settings import setting
from soda_tta.types import Array

PLANNED_ROUNDS = 6  # the batch is chosen so that the budget covers at least this many
FEWEST_IMAGES = 24  # a round with fewer images is not informative
MOST_IMAGES = 384  # to search on: preparing their restored versions takes the time of some queries
SEARCHED = 4  # one in so many images is for the search, the others judge
LARGEST_BATCH = 3  # a round uses at most one in so many images
JUDGE_SHARE = 8  # two queries per judged image cost at most a quarter of what can be spent
FEWEST_SCENES = 16  # to search on and to judge by; with fewer nothing could be concluded
TINY = 1e-9  # deviation of parameters that evolution must not move
FEWEST_OF_CONDITION = 100  # images; a smaller condition is not searched
MOST_SEARCHES = 4  # without a budget, more conditions share the queries of so many searches

Self = TypeVar("Self", bound="EconomyPlan")


class Sizes(NamedTuple):
    """How a budget is divided."""

    judged: int  # images the verdict is based on
    searched: int  # images the search may use
    batch: int  # images per round
    probe: int  # queries of the search


@dataclass(frozen=True, kw_only=True)
class EconomyPlan(AnswerSettings, Helped):
    """The settings of soda-e and what follows from them before the first query."""

    judges: ClassVar[bool] = True
    learns_adaptor: ClassVar[bool] = True

    name: str = "soda-e"
    summary: str = "Few queries: restorations of the images, chosen by pursuit, with a verdict."
    batch: int = setting(128, "images per round of the search, at most")
    judged: int = setting(1000, "images that the verdict is based on, at most")
    level: float = setting(0.01, "accepted rate of wrong adoptions")
    tried: int = setting(8, "moves tried per round of the search")
    caution: float = setting(1.0, "standard errors by which a move must gain to be taken")
    heats: int = setting(1, "heats of a round of the search; after each, the better half goes on")
    population: int = setting(12, "candidates per generation of CMA-ES")
    sigma: float = setting(0.15, "first deviation of CMA-ES, in units of each part of the bank")
    without: str = setting(
        "", "families of parts to leave out, such as colour where colours carry meaning"
    )
    conditions: str = setting(
        "auto", "conditions among the images, each with its own adaptor; a number, or auto"
    )

    fuse: float = setting(0.0, "weight of the helper's own answers; 0: the model's alone are used")

    def __post_init__(self) -> None:
        self._check_helped()
        if not (0 < self.level < 0.5 and self.judged >= 10 and self.batch >= FEWEST_IMAGES):
            raise MethodError(
                f"{self.name} needs level in (0, 0.5), judged >= 10 and batch >= {FEWEST_IMAGES}."
            )
        if self.conditions != "auto" and not re.fullmatch("[1-9][0-9]?", self.conditions):
            raise MethodError(
                f"conditions={self.conditions} is not valid; give a number from 1 to 99, or 'auto'."
            )
        self.check_answers()
        # These raise an error for settings that are impossible.
        self.pursuit()
        self.evolution()
        self.moves()

    def _check_helped(self) -> None:
        """Refuse settings that do not go together with a helper, or without one."""
        if not 0 <= self.fuse <= 1:
            raise MethodError(f"fuse={self.fuse} is not valid; give a weight from 0 to 1.")
        if self.helper is None and self.fuse:
            raise MethodError("fuse averages with a helper's answers; give helper= too.")
        averaged = self.average or self.views != "1"
        if self.helper is not None and (averaged or self.conditions not in ("auto", "1")):
            raise MethodError(
                "with a helper, all images are adapted alike and nothing else is averaged; leave "
                "out conditions, views and average."
            )

    def but(self: Self, **settings: Any) -> Self:
        """The same method with other settings; a number of conditions may be an integer."""
        if "conditions" in settings:
            settings["conditions"] = str(settings["conditions"])
        return super().but(**settings)

    def pursuit(self) -> Pursuit:
        """The first stage of the search."""
        return Pursuit(tried=self.tried, caution=self.caution, heats=self.heats)

    def evolution(self) -> Evolution:
        """The second stage of the search."""
        return Evolution(population=self.population, sigma=self.sigma)

    def moves(self) -> Array:
        """The moves of the bank, except families that are left out."""
        families = [name.strip() for name in self.without.split(",")]
        return moves(tuple(name for name in families if name))

    @property
    def first_pass(self) -> bool:
        """With a helper, only the images that confirm its choice are sent as they are."""
        return self.helper is None

    def confirmation(self, images: int, limit: int | None) -> Confirmation:
        """How a run with a helper divides its queries."""
        return Confirmation.within(images, limit)

    # -- planning --------------------------------------------------------------------------------

    def search_cost(self, batch: int, rounds: int = PLANNED_ROUNDS) -> int:
        """The queries of pursuit with so many rounds on so many images each."""
        pursuit = self.pursuit()
        first, later = pursuit.candidates(len(self.moves()))
        return pursuit.queries(first, batch) + (rounds - 1) * pursuit.queries(later, batch)

    def views_within(self, images: int, limit: int | None) -> int:
        """Views per answer; "auto" has a second one where it does not shorten the search."""
        if self.views != "auto":
            return int(self.views)
        if limit is None:
            return 2
        unlimited = self.divided(images, None)
        left = self.divided(images, limit - 3 * images)
        if unlimited is None:
            return 2 if limit >= 2 * images + 2 * CHECKED else 1
        return 2 if left is not None and left.probe >= unlimited.probe else 1

    def sizes(self, images: int, limit: int | None) -> Sizes | None:
        """How to divide what the first and the final pass leave; None if that is too little."""
        if limit is not None:
            limit -= (1 + self.views_within(images, limit)) * images
        return self.divided(images, limit)

    def divided(self, images: int, left: int | None) -> Sizes | None:
        """How to divide so many queries between search and verdict; None if they are too few."""
        batch = max(FEWEST_IMAGES, min(self.batch, images // LARGEST_BATCH))
        if left is not None:
            for_search = left - 2 * min(self.judged, left // JUDGE_SHARE)
            while batch > FEWEST_IMAGES and self.search_cost(batch) > for_search:
                batch -= 1
        searched = max(batch, min(MOST_IMAGES, images // SEARCHED))
        judged = min(self.judged, images - searched)
        probe = self.search_cost(batch)
        if left is not None:
            judged = min(judged, left // JUDGE_SHARE)
            probe = left - 2 * judged
        enough = judged >= FEWEST and probe >= self.search_cost(batch, rounds=2)
        return Sizes(judged, searched, batch, probe) if enough else None

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
            first = self.search_cost(sizes.batch, rounds=1)
            each = self.search_cost(sizes.batch, rounds=2) - first
            rounds = 1 + max(0, sizes.probe - first) // each
            more = "; what a search of fewer rounds leaves goes to CMA-ES"
            conditions = ""
            if self.most_searches(images) > 1:
                conditions = ", for each condition if there are several"
            return (
                f"at most {rounds} rounds on {sizes.batch} images each"
                f"{more if rounds > PLANNED_ROUNDS else ''}; a verdict on {sizes.judged} others"
                f"{conditions}"
            )
        budgets = (q for q in range(3, 1000) if self.sizes(images, q * images))
        needed = next(budgets, None)
        if plan.limit is None or needed is None:
            return (
                f"{images} images are too few to search on and to judge by; "
                "the model's own answers are used."
            )
        return (
            f"{plan.limit / images:.3g} queries per image are too few for a search; the model's "
            f"own answers are used. At least {needed} are needed."
        )

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
        places: Array,
        scenes: Array,
        sizes: Sizes,
        starts: Array | None = None,
    ) -> EconomySearch:
        """The search, at its beginning."""
        prior = self.shares(work)
        settings = EconomySettings(
            pursuit=self.pursuit(),
            evolution=self.evolution(),
            moves=self.moves(),
            units=units() * self.moves().any(axis=0) + TINY,
            batch=min(sizes.batch, len(places)),
            queries=sizes.probe,
            # A move is taken if its gain is beyond chance; near copies are not further evidence.
            loss_of_each=lambda rows, images: (
                -scene_means(information_against(rows, prior), scenes[images])
            ),
            loss=lambda rows: -mutual_information_against(rows, prior),
            seed=work.seed,
            kept_back=2 * sizes.judged,  # for a verdict on where pursuit ended
            starts=starts,
        )
        return EconomySearch(settings, work.before[places])

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

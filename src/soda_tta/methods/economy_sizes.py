"""The settings of soda-e, and how it divides a budget between search, verdict and answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from soda_tta.adaptors.parts import moves
from soda_tta.adaptors.recipes import usable_recipes
from soda_tta.errors import MethodError
from soda_tta.judging.verdict import FEWEST
from soda_tta.methods.answer_settings import CHECKED, AnswerSettings
from soda_tta.methods.economy_confirm import Confirmation
from soda_tta.methods.helped.helped import Helped
from soda_tta.search import Evolution, Pursuit
from soda_tta.settings import setting
from soda_tta.types import Array

PLANNED_ROUNDS = 6  # the batch is chosen so that the budget covers at least this many
AFTER_RECIPES = 3  # ... and this many if the search begins with the recipes
FEWEST_IMAGES = 24  # a round with fewer images is not informative
MOST_IMAGES = 768  # to search on: preparing their restored versions takes the time of some queries
SEARCHED = 4  # one in so many images is for the search, the others judge
LARGEST_BATCH = 3  # a round uses at most one in so many images
USUAL_BATCH = 128  # images per round; a budget may buy rounds on more of many images
JUDGE_SHARE = 8  # two queries per judged image cost at most a quarter of what can be spent

Self = TypeVar("Self", bound="EconomySizes")


class Sizes(NamedTuple):
    """How a budget is divided."""

    judged: int  # images the verdict is based on
    searched: int  # images the search may use
    batch: int  # images per round
    probe: int  # queries of the search
    recipes: bool = False  # whether the search can afford a round on them


@dataclass(frozen=True, kw_only=True)
class EconomySizes(AnswerSettings, Helped):
    """The settings of soda-e, and how a budget is divided."""

    judges: ClassVar[bool] = True
    learns_adaptor: ClassVar[bool] = True

    name: str = "soda-e"
    summary: str = "Few queries: restorations of the images, chosen by pursuit, with a verdict."
    batch: int = setting(256, "images per round of the search, at most")
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
    recipes: bool = setting(True, "begin with a round on what helped against other degradations")
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

    def starts(self) -> Array:
        """Recipes, where a search may begin besides the images as they are."""
        allowed = self.moves().any(axis=0)
        return usable_recipes(tuple(bool(part) for part in np.asarray(allowed)))

    @property
    def first_pass(self) -> bool:
        """With a helper, only the images that confirm its choice are sent as they are."""
        return self.helper is None

    def confirmation(self, images: int, limit: int | None) -> Confirmation:
        """How a run with a helper divides its queries."""
        return Confirmation.within(images, limit)

    # -- planning --------------------------------------------------------------------------------

    def search_cost(
        self, batch: int, rounds: int = PLANNED_ROUNDS, *, recipes: bool = False
    ) -> int:
        """The queries of pursuit with so many rounds on so many images each."""
        starts = len(self.starts()) if recipes else 0
        return self.pursuit().queries(batch, len(self.moves()), rounds, starts)

    def recipes_cost(self, batch: int, recipes: int | None = None) -> int:
        """The queries of the round on so many recipes, by default on all."""
        recipes = len(self.starts()) if recipes is None else recipes
        pursuit, moves = self.pursuit(), len(self.moves())
        return pursuit.queries(batch, moves, 1, recipes) - pursuit.queries(batch, moves, 1)

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
        if self.recipes:
            sizes = self._divided(images, left, AFTER_RECIPES, recipes=True)
            needed = self.search_cost(sizes.batch, AFTER_RECIPES, recipes=True)
            if sizes.judged >= FEWEST and sizes.probe >= needed:
                return sizes
        sizes = self._divided(images, left, PLANNED_ROUNDS, recipes=False)
        enough = sizes.judged >= FEWEST and sizes.probe >= self.search_cost(sizes.batch, rounds=2)
        return sizes if enough else None

    def _divided(self, images: int, left: int | None, rounds: int, *, recipes: bool) -> Sizes:
        """The same, however few they are, for so many rounds."""
        searched = min(MOST_IMAGES, images // SEARCHED)
        batch = min(USUAL_BATCH, images // LARGEST_BATCH)
        if left is not None:
            batch = max(batch, searched // LARGEST_BATCH)
        batch = max(FEWEST_IMAGES, min(self.batch, batch))
        if left is not None:
            for_search = left - 2 * min(self.judged, left // JUDGE_SHARE)
            while (
                batch > FEWEST_IMAGES
                and self.search_cost(batch, rounds, recipes=recipes) > for_search
            ):
                batch -= 1
        searched = max(batch, searched)
        judged = min(self.judged, images - searched)
        probe = self.search_cost(batch, recipes=recipes)
        if left is not None:
            judged = min(judged, left // JUDGE_SHARE)
            probe = left - 2 * judged
        return Sizes(judged, searched, batch, probe, recipes)

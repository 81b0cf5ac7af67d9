"""soda-e on mixed images: a search for each condition, each starting from what others found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from soda_tta.adaptors import Bank
from soda_tta.conditions import Conditions, find_conditions
from soda_tta.conditions.statistics import SMALLEST_SIDE
from soda_tta.engine.events import Measured
from soda_tta.engine.restored import RestoredImages
from soda_tta.engine.work import Work
from soda_tta.judging.scene_means import scene_count, scene_means
from soda_tta.judging.split import split_scenes
from soda_tta.methods.economy_plan import (
    FEWEST_OF_CONDITION,
    FEWEST_SCENES,
    MOST_SEARCHES,
    EconomyPlan,
)
from soda_tta.methods.economy_sizes import Sizes
from soda_tta.methods.economy_survey import KEPT, joined_by_gains
from soda_tta.objectives import information_against
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import EconomySearch
from soda_tta.types import Array

COMPARED = 64  # images per condition on which the adaptors of all conditions are compared
COMPARED_SHARE = 20  # the comparison costs at most one in so many queries
COMPARED_PART = 10  # ... and uses at most one in so many images of a condition


def conditions_of(method: EconomyPlan, work: Work) -> Conditions | None:
    """The conditions to adapt separately; None if all images are alike."""
    enough = len(work.images) >= 2 * FEWEST_OF_CONDITION
    if method.conditions == "1" or not enough or min(work.images.size) < SMALLEST_SIDE:
        return None
    number: int | Literal["auto"] = "auto"
    if method.conditions != "auto":
        number = int(method.conditions)

    def measured(done: int, of: int) -> None:
        work.tell(Measured(done, of))
        work.check_stop()

    found = find_conditions(
        work.images, conditions=number, groups=work.kinds, seed=work.seed, progress=measured
    )
    # Images of a small condition go to the nearest large one, or are unlike all that are left.
    large = np.flatnonzero(np.array(found.sizes()) >= FEWEST_OF_CONDITION)
    if len(large) < 2:
        return None
    return found if len(large) == len(found) else found.only(large)


def nothing() -> Array:
    """No images."""
    return np.zeros(0, int)


@dataclass
class Ground:
    """The images of one condition, and what its search found."""

    number: int
    places: Array  # all its familiar images
    surveyed: Array = field(default_factory=nothing)
    starts: Array | None = None  # where its search may begin
    compared: Array = field(default_factory=nothing)
    searched: Array = field(default_factory=nothing)
    judged: Array = field(default_factory=nothing)
    adaptor: int = 0  # the place of what was found on the shelf; 0 if nothing helped
    pursued: Array | None = None  # where pursuit ended, if evolution went on
    known: tuple[Array, Array] = field(default_factory=lambda: (nothing(), nothing()))


class Campaign:
    """The searches of several conditions, within one budget.

    Parameters
    ----------
    method : the settings.
    work : the run.
    conditions : of its images.

    Attributes
    ----------
    shelf : list of arrays
        The parameters found so far; the first ones are zero and change nothing.
    grounds : list of Ground
        One per condition.
    """

    def __init__(self, method: EconomyPlan, work: Work, conditions: Conditions) -> None:
        self.method = method
        self.work = work
        self.conditions = conditions
        self.bank = Bank.for_size(work.images.size).build()
        self.shelf: list[Array] = [np.zeros(self.bank.parameters.size)]
        self.grounds = grounds_of(conditions)
        self.pool = self.affordable()  # queries that are not spent or promised yet
        self.compared = 0
        self.rounds = 0
        self.cut_short = False

    # -- spending: counted here and not from the ledger, so that a resumed run divides it alike ----

    def affordable(self) -> int | None:
        """Queries for searches and verdicts; None if each condition gets a whole search."""
        images = len(self.work.images)
        limit = self.work.meter.limit
        if limit is not None:
            return max(0, limit - images - self.method.answers_of(self.work))
        if len(self.grounds) <= MOST_SEARCHES:
            return None
        return MOST_SEARCHES * cost_of(self.method.sizes(images, None))

    def images_to_compare(self) -> int:
        """Images of each condition on which all adaptors are compared; the pool pays for them."""
        if self.pool is None:
            return COMPARED
        adaptors = len(self.grounds)
        count = min(COMPARED, self.pool // (COMPARED_SHARE * adaptors**2))
        self.pool -= count * adaptors**2
        return count

    def sizes_of(self, ground: Ground) -> Sizes | None:
        """What the search of a condition may use: its share of what the earlier ones left."""
        count = len(ground.places)
        if self.pool is None:
            return self.method.sizes(count, None)
        return self.method.divided(count, self.share_of(ground, self.grounds[ground.number :]))

    def share_of(self, ground: Ground, waiting: Sequence[Ground]) -> int:
        """How much of the pool is for one of the conditions that wait for their search."""
        assert self.pool is not None
        wanted = [cost_of(self.method.sizes(len(each.places), None)) for each in waiting]
        own = cost_of(self.method.sizes(len(ground.places), None))
        return self.pool * own // max(1, sum(wanted))

    # -- the survey ------------------------------------------------------------------------------

    def images_to_survey(self) -> int:
        """Images of each condition for the survey: as many as its searches save; 0 for none."""
        if self.method.conditions != "auto":
            return 0
        recipes = len(self.method.starts())
        counts = []
        for ground in self.grounds:
            left = None if self.pool is None else self.share_of(ground, self.grounds)
            sizes = self.method.divided(len(ground.places), left)
            if sizes is None or not sizes.recipes:
                return 0
            saved = self.method.recipes_cost(sizes.batch) - self.method.recipes_cost(
                sizes.batch, KEPT
            )
            counts.append(saved // recipes)
        return min(counts)

    def survey(self) -> None:
        """Join conditions that the same recipes help, and note where searches may begin."""
        count = self.images_to_survey()
        if not count:
            return
        recipes = self.method.starts()
        gains = []
        for ground in self.grounds:
            random = generator(self.work.seed, RandomStream.SURVEY, ground.number)
            ground.surveyed = np.sort(random.permutation(ground.places)[:count])
            gains.append(self.gains(recipes, ground.surveyed))
            if self.pool is not None:
                self.pool -= len(recipes) * len(ground.surveyed)
        sizes = [len(ground.places) for ground in self.grounds]
        joined = sorted(
            joined_by_gains(gains, sizes), key=lambda each: -sum(sizes[m] for m in each.members)
        )
        numbers = np.empty(len(self.grounds), int)
        for number, each in enumerate(joined):
            numbers[list(each.members)] = number
        surveyed = [ground.surveyed for ground in self.grounds]
        self.conditions = self.conditions.joined(numbers)
        self.grounds = grounds_of(self.conditions)
        for ground, each in zip(self.grounds, joined, strict=True):
            ground.surveyed = np.sort(np.concatenate([surveyed[m] for m in each.members]))
            ground.starts = recipes[list(each.recipes)]
        self.method = replace(self.method, recipes=False)

    def gains(self, recipes: Array, places: Array) -> Array:
        """What each recipe gains over the images as they are, in nats; near copies count once."""
        parts = self.method.moves().any(axis=0)
        restored = RestoredImages(
            self.bank, self.work.images, places, np.asarray(parts), len(places), len(places)
        )
        box = self.work.asking("probe")
        responses = restored.answers(recipes, np.arange(len(places)), box)
        prior = self.method.shares(self.work)
        scenes = self.work.scenes(places)
        before, *after = (
            scene_means(information_against(rows, prior), scenes)
            for rows in (self.work.before[places], *responses)
        )
        gains: Array = (np.array(after) - before).mean(axis=1)
        return gains

    # -- searching -------------------------------------------------------------------------------

    def search_all(self) -> None:
        """Search every condition, the most frequent first."""
        self.survey()
        self.compared = self.images_to_compare()
        for ground in self.grounds:
            sizes = self.sizes_of(ground)
            if sizes is not None:
                self.search(ground, sizes)

    def search(self, ground: Ground, sizes: Sizes) -> None:
        """Find an adaptor for one condition, starting from the best of those found so far."""
        random = generator(self.work.seed, RandomStream.SPLIT, ground.number)
        order = ground.places[random.permutation(len(ground.places))]
        order = order[~np.isin(order, ground.surveyed)]
        compared = min(self.compared, len(order) // COMPARED_PART)
        ground.compared = np.sort(order[:compared])
        places = np.sort(order[compared : compared + sizes.judged + sizes.searched])
        scenes = self.work.scenes(places)
        if scene_count(scenes) < FEWEST_SCENES:
            return
        split = split_scenes(scenes, sizes.judged, sizes.searched, random)
        ground.judged = np.sort(places[split.judged])
        restored = self.method.restored(self.bank, self.work, places[split.searched], sizes)
        ground.searched = restored.places
        used = scenes[np.searchsorted(places, restored.places)]
        found = self.shelf[1:] if ground.starts is None else [*ground.starts, *self.shelf[1:]]
        search = self.method.search(self.work, restored, used, sizes, found)
        promised = 0 if self.pool is None else self.pool - sizes.probe
        reserve = self.method.answers_of(self.work) + promised
        self.method.drive(search, restored, self.work, reserve)
        self.keep(ground, search)

    def keep(self, ground: Ground, search: EconomySearch) -> None:
        """Note what a search found and spent."""
        self.rounds += search.rounds
        self.cut_short |= search.cut_short
        if self.pool is not None:
            self.pool -= search.spent + 2 * len(ground.judged)
        same = [np.array_equal(search.theta, theta) for theta in self.shelf]
        if not any(same):
            self.shelf.append(search.theta)
            same.append(True)
        ground.adaptor = same.index(True)
        if search.pursued.any() and not np.array_equal(search.theta, search.pursued):
            ground.pursued = search.pursued
        images, rows = search.known()
        ground.known = (ground.searched[images], rows)


def grounds_of(conditions: Conditions) -> list[Ground]:
    """The familiar images of each condition."""
    return [
        Ground(number, np.flatnonzero((conditions.of_each == number) & ~conditions.unfamiliar))
        for number in range(len(conditions))
    ]


def cost_of(sizes: Sizes | None) -> int:
    """The queries of a search and its verdict."""
    return 0 if sizes is None else sizes.probe + 2 * sizes.judged

"""soda-e: choose among restorations of the images with few queries, and deploy only what helps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.adaptors.parts import moves, units
from soda_tta.data import Images
from soda_tta.engine.events import Step
from soda_tta.engine.plan import Plan
from soda_tta.engine.restored import RestoredImages
from soda_tta.engine.work import Interrupted, Work
from soda_tta.errors import MethodError
from soda_tta.judging.scene_means import scene_count, scene_means
from soda_tta.judging.split import split_scenes
from soda_tta.judging.verdict import FEWEST
from soda_tta.methods.economy_judge import Judge
from soda_tta.methods.method import Method, Outcome
from soda_tta.objectives import information_of_each, mutual_information
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import EconomySearch, EconomySettings, Evolution, Pursuit, Round
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


class Sizes(NamedTuple):
    """How a budget is divided."""

    judged: int  # images the verdict is based on
    searched: int  # images the search may use
    batch: int  # images per round
    probe: int  # queries of the search


@dataclass(frozen=True, kw_only=True)
class Economy(Method):
    """Search the restoration bank by mutual information on some images, and judge on others.

    The cost does not grow with the number of images: about 12,000 queries of search by default. A
    larger budget continues with CMA-ES until images held out from it see no gain. The adaptor is
    adopted only if, on images of scenes that the search never used, the model recognises two views
    of an image as the same more reliably than before, beyond chance.
    """

    judges: ClassVar[bool] = True

    name: str = "soda-e"
    summary: str = "Few queries: restorations of the images, chosen by pursuit, with a verdict."
    batch: int = setting(128, "images per round of the search, at most")
    judged: int = setting(1000, "images that the verdict is based on, at most")
    level: float = setting(0.01, "accepted rate of wrong adoptions")
    tried: int = setting(8, "moves tried per round of the search")
    caution: float = setting(1.0, "standard errors by which a move must gain to be taken")
    population: int = setting(12, "candidates per generation of CMA-ES")
    sigma: float = setting(0.15, "first deviation of CMA-ES, in units of each part of the bank")
    without: str = setting(
        "", "families of parts to leave out, such as colour where colours carry meaning"
    )
    average: bool = setting(
        False, "answer with the mean of the probabilities of the image and of the adapted image"
    )

    def __post_init__(self) -> None:
        if not (0 < self.level < 0.5 and self.judged >= 10 and self.batch >= FEWEST_IMAGES):
            raise MethodError(
                f"{self.name} needs level in (0, 0.5), judged >= 10 and batch >= {FEWEST_IMAGES}."
            )
        # These raise an error for settings that are impossible.
        self.pursuit()
        self.evolution()
        self.moves()

    def pursuit(self) -> Pursuit:
        """The first stage of the search."""
        return Pursuit(tried=self.tried, caution=self.caution)

    def evolution(self) -> Evolution:
        """The second stage of the search."""
        return Evolution(population=self.population, sigma=self.sigma)

    def moves(self) -> Array:
        """The moves of the bank, except families that are left out."""
        families = [name.strip() for name in self.without.split(",")]
        return moves(tuple(name for name in families if name))

    # -- planning --------------------------------------------------------------------------------

    def sizes(self, images: int, limit: int | None) -> Sizes | None:
        """How to divide what the first and the final pass leave; None if that is too little."""
        first, later = self.pursuit().candidates(len(self.moves()))
        per_image = first + (PLANNED_ROUNDS - 1) * later  # queries per image of a whole search
        batch = max(FEWEST_IMAGES, min(self.batch, images // LARGEST_BATCH))
        left = None if limit is None else limit - 2 * images
        if left is not None:
            for_search = left - 2 * min(self.judged, left // JUDGE_SHARE)
            batch = max(FEWEST_IMAGES, min(batch, for_search // per_image))
        searched = max(batch, min(MOST_IMAGES, images // SEARCHED))
        judged = min(self.judged, images - searched)
        probe = per_image * batch
        if left is not None:
            judged = min(judged, left // JUDGE_SHARE)
            probe = left - 2 * judged
        enough = judged >= FEWEST and probe >= batch * (first + later)
        return Sizes(judged, searched, batch, probe) if enough else None

    def plan(self, images: int, limit: int | None) -> Plan:
        """What the method does with so many images and at most `limit` queries."""
        sizes = self.sizes(images, limit)
        queries = {"select": images}
        if sizes is None:
            # Without a limit, too few images are the reason, and no budget would help.
            shortened = self.sizes(images, None) is not None
            return Plan(images, 0, queries, limit, shortened=shortened, last_epoch=0)
        queries |= {"probe": sizes.probe, "judge": 2 * sizes.judged, "evaluate": images}
        return Plan(images, 1, queries, limit, last_epoch=0)

    def outline(self, plan: Plan) -> str:
        """What the method will do within a plan, in words."""
        images = plan.images
        sizes = self.sizes(images, plan.planned_limit)
        if sizes is not None:
            first, later = self.pursuit().candidates(len(self.moves()))
            rounds = 1 + max(0, sizes.probe // sizes.batch - first) // later
            more = "; what a search of fewer rounds leaves goes to CMA-ES"
            return (
                f"at most {rounds} rounds on {sizes.batch} images each"
                f"{more if rounds > PLANNED_ROUNDS else ''}; a verdict on {sizes.judged} others"
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
        """Refuse images that are too small for the bank."""
        if images is not None and self.sizes(len(images), None) is not None:
            Bank.for_size(images.size).build().prepare(images[slice(0, 1)])

    # -- running ---------------------------------------------------------------------------------

    def adapt(self, work: Work) -> Outcome:
        """Search, judge, and adopt or keep."""
        sizes = self.sizes(len(work.images), work.meter.limit)
        if sizes is None:
            return Outcome(work.before, reason=self.outline(work.plan))
        random = generator(work.seed, RandomStream.SPLIT)
        places = np.sort(random.permutation(len(work.images))[: sizes.judged + sizes.searched])
        scenes = work.scenes(places)
        if scene_count(scenes) < FEWEST_SCENES:
            return Outcome(work.before, reason=too_few_scenes(len(places), scene_count(scenes)))
        split = split_scenes(scenes, sizes.judged, sizes.searched, random)
        adaptor = Bank.for_size(work.images.size).build()
        restored = self.restored(adaptor, work, places[split.searched], sizes)
        used = scenes[np.searchsorted(places, restored.places)]
        search = self.search(work, restored.places, used, sizes)
        judge = Judge(work, adaptor, places[split.judged], scenes[split.judged], restored.places)
        reserve = len(work.images) + 2 * sizes.judged
        try:
            self.drive(search, restored, work, reserve)
            outcome = self.judged_outcome(work, search, restored, judge)
        except Interrupted:
            adaptor.parameters = search.theta.astype(np.float32)
            return Outcome(adaptor=adaptor, stopped="interrupted")
        if search.cut_short:
            outcome = replace(outcome, stopped="budget")
        return replace(outcome, average=self.average)

    def restored(
        self, adaptor: BankAdaptor, work: Work, free: Array, sizes: Sizes
    ) -> RestoredImages:
        """The images of the search."""
        parts = np.asarray(self.moves().any(axis=0))
        return RestoredImages(adaptor, work.images, free, parts, sizes.batch, MOST_IMAGES)

    def search(self, work: Work, places: Array, scenes: Array, sizes: Sizes) -> EconomySearch:
        """The search, at its beginning."""
        settings = EconomySettings(
            pursuit=self.pursuit(),
            evolution=self.evolution(),
            moves=self.moves(),
            units=units() * self.moves().any(axis=0) + TINY,
            batch=min(sizes.batch, len(places)),
            queries=sizes.probe,
            # A move is taken if its gain is beyond chance; near copies are not further evidence.
            loss_of_each=lambda rows, images: (
                -scene_means(information_of_each(rows), scenes[images])
            ),
            loss=lambda rows: -mutual_information(rows),
            seed=work.seed,
            kept_back=2 * sizes.judged,  # for a verdict on where pursuit ended
        )
        return EconomySearch(settings, work.before[places])

    def drive(
        self, search: EconomySearch, restored: RestoredImages, work: Work, reserve: int
    ) -> None:
        """Answer the questions of the search until it ends or the budget does."""
        box = work.asking("probe")
        while True:
            left = work.meter.left
            question = search.ask(None if left is None else left - reserve)
            if question is None:
                return
            answers = restored.answers(question.thetas, question.images, box)
            completed = search.tell(answers)
            if completed is not None:
                work.record(step_of(completed, search.rounds))

    def judged_outcome(
        self, work: Work, search: EconomySearch, restored: RestoredImages, judge: Judge
    ) -> Outcome:
        """Adopt the adaptor, or keep the images as they are and the adaptor as a candidate."""
        cut = ", cut short by lost requests" if search.cut_short else ""
        rounds = f"{search.rounds} rounds of search{cut}"
        # Evolution may fit the images of the search too closely: where pursuit ended is judged too.
        thetas = [theta for theta in (search.theta, search.pursued) if theta.any()]
        if not thetas:
            reason = (
                f"{rounds}; no change of the images helped, and the model's own answers are used."
            )
            return Outcome(work.before, reason=reason)
        if np.array_equal(search.theta, search.pursued):
            thetas = thetas[:1]
        candidate, verdict = judge.best_of(thetas, self.level)
        if not verdict.adopt:
            reason = f"{rounds}; the verdict is to keep. What was found is kept as a candidate."
            return Outcome(work.before, verdict=verdict, candidate=candidate, reason=reason)
        known = candidate.answers(len(work.images))
        if np.array_equal(candidate.adaptor.parameters, search.theta.astype(np.float32)):
            images, rows = search.known()
            known[restored.places[images]] = rows
        return Outcome(
            adaptor=candidate.adaptor,
            verdict=verdict,
            candidate=candidate,
            known=known,
            reason=f"{rounds}; the verdict is to adopt.",
        )


def too_few_scenes(images: int, scenes: int) -> str:
    """Why there was no search."""
    return (
        f"{images:,} images show only {scenes:,} scenes: near copies of an image count once, and "
        f"nothing can be concluded from fewer than {FEWEST_SCENES}. The model's own answers are "
        "used. Add images of other scenes, or state with groups= which images belong together."
    )


def step_of(completed: Round, number: int) -> Step:
    """A round of the search as a line of the history."""
    return Step(
        epoch=number,
        step=1,
        of=1,
        lr=completed.length,
        purpose="probe",
        queries=completed.queries,
        losses=completed.losses,
        mutual_information=-completed.losses[0],
        cross_entropy=0.0,
    )


soda_e = Economy()

"""soda-e: choose among restorations of the images with few queries, and deploy only what helps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from soda_tta.adaptors import Bank
from soda_tta.engine.restored import RestoredImages
from soda_tta.engine.work import Interrupted, Work
from soda_tta.judging.scene_means import scene_count
from soda_tta.judging.split import split_scenes
from soda_tta.methods.economy_answers import with_answers
from soda_tta.methods.economy_campaign import Campaign, conditions_of
from soda_tta.methods.economy_helper import adapt_with_helper
from soda_tta.methods.economy_judge import Judge
from soda_tta.methods.economy_plan import FEWEST_SCENES, EconomyPlan
from soda_tta.methods.economy_verdicts import found_so_far, joined, judged
from soda_tta.methods.method import Outcome
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import EconomySearch
from soda_tta.wording import counted


@dataclass(frozen=True, kw_only=True)
class Economy(EconomyPlan):
    """Search the restoration bank by mutual information on some images, and judge on others.

    Mixed images are adapted condition by condition. The cost does not grow with the number of
    images: about 15,000 queries of search by default, for each of at most four conditions. A
    larger budget continues with CMA-ES until images held out from it see no gain. The adaptor is
    adopted only if, on images of scenes that the search never used, the model recognises two views
    of an image as the same more reliably than before, beyond chance.
    """

    def adapt(self, work: Work) -> Outcome:
        """Search, judge, adopt or keep, and choose how responses become answers."""
        return with_answers(self, work, self.adapt_images(work))

    def adapt_images(self, work: Work) -> Outcome:
        """Search, judge, and adopt or keep: for each condition, if there are several."""
        if self.helper is not None:
            return adapt_with_helper(self, work)
        conditions = conditions_of(self, work)
        if conditions is None:
            return self.adapt_all_alike(work)
        campaign = Campaign(self, work, conditions)
        try:
            campaign.search_all()
            outcome = judged(campaign, joined(campaign))
        except Interrupted:
            return Outcome(adaptor=found_so_far(campaign), stopped="interrupted")
        if campaign.cut_short:
            outcome = replace(outcome, stopped="budget")
        return replace(outcome, average=self.average)

    def adapt_all_alike(self, work: Work) -> Outcome:
        """One adaptor for all images."""
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
        search = self.search(work, restored, used, sizes)
        judge = Judge(
            work,
            adaptor,
            places[split.judged],
            scenes[split.judged],
            restored.places,
            answers=self.answers_of(work),
            prior=self.shares(work),
        )
        reserve = self.answers_of(work) + 2 * sizes.judged
        try:
            self.drive(search, restored, work, reserve)
            outcome = self.judged_outcome(work, search, restored, judge)
        except Interrupted:
            adaptor.parameters = search.theta.astype(np.float32)
            return Outcome(adaptor=adaptor, stopped="interrupted")
        if search.cut_short:
            outcome = replace(outcome, stopped="budget")
        return replace(outcome, average=self.average)

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
        f"{images:,} images show only {counted(scenes, 'scene')}: near copies of an image count "
        f"once, and nothing can be concluded from fewer than {FEWEST_SCENES}. The model's own "
        "answers are used. Add images of other scenes, or state with groups= which images belong "
        "together."
    )


soda_e = Economy()

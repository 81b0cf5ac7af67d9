"""soda-e on mixed images: conditions that one adaptor serves are joined, and each is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from soda_tta.adaptors import Adaptor, BankAdaptor, RoutedAdaptor
from soda_tta.judging.candidate import Candidate
from soda_tta.judging.condition_result import ConditionResult, holm
from soda_tta.judging.condition_results import ConditionResults
from soda_tta.judging.verdict import FEWEST, Verdict, sentence_of
from soda_tta.methods.economy_campaign import Campaign
from soda_tta.methods.economy_judge import Judge
from soda_tta.methods.economy_merging import Group, serving_groups
from soda_tta.methods.method import Outcome
from soda_tta.types import Array
from soda_tta.wording import counted

EXAMPLES = 8  # typical images that are kept for each condition
NOTHING_HELPED = "no change of the images helped, and the model's own answers are used."


def joined(campaign: Campaign) -> list[Group]:
    """Groups of conditions, each with the place of its adaptor on the shelf."""
    classes = [compared(campaign, ground.compared) for ground in campaign.grounds]
    own = [ground.adaptor for ground in campaign.grounds]
    return serving_groups(classes, own)


def compared(campaign: Campaign, places: Array) -> Array:
    """The class of some images by each adaptor of the shelf."""
    shelf = campaign.shelf
    if len(shelf) == 1 or len(places) < FEWEST:
        return np.zeros((len(shelf), 0), int)
    work = campaign.work
    work.check_stop()
    adapted = campaign.bank.candidates(work.images[places], np.array(shelf[1:]))
    box = work.asking("probe")
    responses = [work.before[places], *(box(images) for images in adapted)]
    return np.array([rows.argmax(axis=1) for rows in responses])


def judged(campaign: Campaign, groups: Sequence[Group]) -> Outcome:
    """A verdict for each group of conditions, and what follows for all images."""
    sizes = np.array(campaign.conditions.sizes())
    groups = sorted(groups, key=lambda group: -sizes[list(group.members)].sum())
    numbers = np.empty(len(campaign.grounds), int)
    for number, group in enumerate(groups):
        numbers[list(group.members)] = number
    conditions = campaign.conditions.joined(numbers)
    tested = sum(group.adaptor > 0 for group in groups)
    results = []
    for number, group in enumerate(groups):
        result = ConditionResult(
            words=conditions.words[number],
            images=conditions.sizes()[number],
            examples=tuple(conditions.examples(number, EXAMPLES).tolist()),
        )
        if group.adaptor:
            candidate, verdict = judge(campaign, group, campaign.method.level / tested)
            result = replace(result, candidate=candidate, verdict=verdict)
        results.append(result)
    results = with_adjusted_p_values(results, campaign.method.level)
    return composed(
        campaign, groups, ConditionResults(results, conditions.router, conditions.routes)
    )


def judge(campaign: Campaign, group: Group, level: float) -> tuple[Candidate, Verdict]:
    """The verdict on what was found for a group of conditions."""
    members = [campaign.grounds[number] for number in group.members]
    searched = np.sort(np.concatenate([ground.searched for ground in members]))
    surveyed = np.concatenate([ground.surveyed for ground in members])
    unsearched = np.sort(np.concatenate([ground.judged for ground in members]))
    both = np.unique(np.concatenate([searched, surveyed, unsearched]))
    scenes = campaign.work.scenes(both)
    seen = scenes[np.searchsorted(both, np.concatenate([searched, surveyed]))]
    own = scenes[np.searchsorted(both, unsearched)]
    unseen = ~np.isin(own, seen)  # a scene may lie in two conditions that were joined
    judging = Judge(
        campaign.work,
        campaign.bank,
        unsearched[unseen],
        own[unseen],
        searched,
        answers=campaign.method.answers_of(campaign.work),
        prior=campaign.method.shares(campaign.work),
    )
    thetas = [campaign.shelf[group.adaptor]]
    owner = next(ground for ground in campaign.grounds if ground.adaptor == group.adaptor)
    if owner.pursued is not None:
        thetas.append(owner.pursued)
    return judging.best_of(thetas, level)


def with_adjusted_p_values(results: list[ConditionResult], level: float) -> list[ConditionResult]:
    """Verdicts that hold together: the rate of any wrong adoption among them is the level."""
    tested = [place for place, result in enumerate(results) if result.verdict is not None]
    verdicts = [result.verdict for result in results if result.verdict is not None]
    adjusted = list(results)
    p_values = holm([verdict.p_value for verdict in verdicts])
    for place, verdict, p_value in zip(tested, verdicts, p_values, strict=True):
        verdict = replace(verdict, p_value=p_value, level=level, adopt=p_value <= level)
        verdict = replace(verdict, sentence=sentence_of(verdict))
        adjusted[place] = replace(results[place], verdict=verdict)
    return adjusted


def composed(campaign: Campaign, groups: Sequence[Group], conditions: ConditionResults) -> Outcome:
    """One outcome of all conditions; if one adaptor serves all of them, without conditions."""
    over = counted(len(campaign.grounds), "condition")
    rounds = f"{campaign.rounds} rounds of search over {over}"
    verdict = conditions.verdict
    outcome = Outcome(
        probabilities=campaign.work.before,
        verdict=verdict,
        conditions=conditions,
        reason=f"{rounds}; {NOTHING_HELPED}",
    )
    adaptor: Adaptor = conditions.adaptor
    if len(conditions) == 1:
        only = conditions[0]
        adaptor = only.adaptor
        outcome = replace(outcome, conditions=None, verdict=only.verdict, candidate=only.candidate)
    if verdict is None:
        return outcome
    if not verdict.adopt:
        reason = f"{rounds}; the verdict is to keep. What was found is kept as a candidate."
        return replace(outcome, reason=reason)
    return replace(
        outcome,
        probabilities=None,
        adaptor=adaptor,
        known=known_answers(campaign, groups, conditions),
        reason=f"{rounds}; the verdict is to adopt.",
    )


def known_answers(
    campaign: Campaign, groups: Sequence[Group], conditions: ConditionResults
) -> Array:
    """Answers that need no further query: of a verdict or a search, or of unchanged images."""
    known = conditions.known_answers(campaign.work.before)
    if len(conditions) == 1:
        known[~conditions.routes.familiar] = np.nan  # there is no router then
    for number, (group, result) in enumerate(zip(groups, conditions, strict=True)):
        own = conditions.members(number)  # joining may have moved an image to another condition
        for member in group.members:
            ground = campaign.grounds[member]
            found = campaign.shelf[ground.adaptor].astype(np.float32)
            if result.adopted and np.array_equal(found, result.found.parameters):
                places, rows = ground.known
                known[places[own[places]]] = rows[own[places]]
    return known


def found_so_far(campaign: Campaign) -> Adaptor:
    """What an interrupted run has found for each condition; nothing of it is judged."""
    conditions = campaign.conditions
    return RoutedAdaptor(
        router=conditions.router,
        adaptors=[
            BankAdaptor(
                structure=campaign.bank.structure, parameters=campaign.shelf[ground.adaptor]
            )
            for ground in campaign.grounds
        ],
        words=conditions.words,
        shares=[size / len(conditions.of_each) for size in conditions.sizes()],
    )

"""What would settle an open verdict: how many labels, or how many more images."""

from __future__ import annotations

import math

import numpy as np

from soda_tta.judging.candidate import Candidate
from soda_tta.judging.measures import (
    GUARD_LEVEL,
    LEAST_GAIN,
    at_confidence_of,
    information_of_views,
    standard_error,
)
from soda_tta.judging.scene_means import scene_count, scene_means
from soda_tta.judging.verdict import Verdict
from soda_tta.objectives.agreement import matching_information_of_each
from soda_tta.types import Array

LABELS = 30  # of images whose class changes: if four in five become right, this is nearly enough
FEWEST_LABELS = 8  # with fewer changed images even unanimous labels hardly decide
POWER = 0.8  # how likely the further images should decide
MOST_IMAGES = 20  # times the images judged so far; beyond that the gain is too small to matter


def what_would_settle(verdict: Verdict, candidate: Candidate, before: Array) -> list[str]:
    """Sentences that say what to do about a candidate that was not adopted.

    Parameters
    ----------
    verdict : the verdict to keep.
    candidate : what it was given on.
    before : array of shape (images, classes)
        Responses to all images of the run as they are.
    """
    if verdict.adopt:
        return []
    sentences = [f"What was found is kept: {candidate.adaptor.describe()}."]
    changed = len(candidate.changed(before))
    judged = len(candidate.judged)
    if changed < FEWEST_LABELS:
        few = f"It changes the class of only {changed} of {judged:,} judged images."
        sentences.append(few)
    else:
        wanted = min(changed, LABELS)
        sentences.append(
            f"It changes the class of {changed:,} of {judged:,} judged images. Labels of {wanted} "
            "of these may settle it (label-these.csv lists them)."
        )
    more = more_images(verdict, candidate, before)
    if more is not None:
        sentences.append(f"Without labels, about {more:,} more independent images would.")
    return sentences


def more_images(verdict: Verdict, candidate: Candidate, before: Array) -> int | None:
    """How many more independent images would probably show the gain; None if it is too small."""
    from scipy import stats

    views = candidate.views_before(before)
    equal = at_confidence_of(candidate.views_after, views)
    information = information_of_views(candidate.views_after) - information_of_views(views)
    matching = matching_information_of_each(*equal) - matching_information_of_each(*views)
    tests = ((information, verdict.level / 2), (matching, GUARD_LEVEL))
    count = scene_count(candidate.scenes)
    needed = 0.0
    for each, level in tests:
        gain = scene_means(each, candidate.scenes)
        mean = float(gain.mean()) - LEAST_GAIN
        if mean <= 0 or count < 2:
            return None
        deviation = standard_error(gain) * math.sqrt(count)
        quantiles = stats.norm.isf(level) + stats.norm.isf(1 - POWER)
        needed = max(needed, (quantiles * deviation / mean) ** 2)
    more = max(needed - count, count / 4)
    if more > MOST_IMAGES * count:
        return None
    digits = 10 ** max(1, int(np.log10(more)))
    return int(math.ceil(more / digits) * digits)

"""The measures behind a verdict: what the responses to two views of an image tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from soda_tta.judging.scene_means import scene_means
from soda_tta.objectives.agreement import (
    agreement_of_each,
    matching_information_of_each,
    shared_information_of_each,
)
from soda_tta.objectives.class_prior import information_against
from soda_tta.objectives.equations import entropy
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

Views = tuple[Array, Array]  # probabilities for the images, and for the same images shifted
Measure = Literal["information", "consistency", "shared information", "accuracy"]
LEAST_LIKELY = 1e-12  # a zero of a model that rounds its responses is not impossible
# Nats. The same probabilities, tempered back and forth, differ by rounding, all in one direction.
LEAST_GAIN = 1e-3
BISECTIONS = 30
GUARD_LEVEL = 0.05  # if confidence alone rises, this share of the changes may pass the guard


class TestResult(NamedTuple):
    """What one measure says."""

    measure: Measure
    p_value: float
    before: float  # mean of the measure
    after: float


class Evidence(NamedTuple):
    """What the tests of a verdict are given.

    Parameters
    ----------
    before, after, equal : pairs of arrays of shape (n, classes)
        Views without adaptation, with it, and with it at the confidence of `before`.
    scenes : integer array of shape (n,)
    prior : array of shape (classes,), or None
        The share of each class, if it was stated.
    """

    before: Views
    after: Views
    equal: Views
    scenes: Array
    prior: Array | None = None


def information_test(evidence: Evidence) -> TestResult:
    """Whether the responses carry more information about the images, beyond more confidence.

    The information is what the search maximises, here on images that it did not use. It also rises
    with confidence alone, and where predictions split up into more classes, which on unbalanced
    images is harm. So two conditions must hold at equal confidence: two views of an image match
    each other better than before (at `GUARD_LEVEL`), and they agree at least as often.
    If class shares were stated, the information counts against them, as it does in the search.
    """
    before, after, equal, scenes, prior = evidence
    old = scene_means(information_of_views(before, prior), scenes)
    new = scene_means(information_of_views(after, prior), scenes)
    matching = matching_information_of_each(*equal) - matching_information_of_each(*before)
    agreement = agreement_of_each(*equal) - agreement_of_each(*before)
    recognises = one_sided_p_value(scene_means(matching, scenes)) <= GUARD_LEVEL
    agrees = scene_means(agreement, scenes).mean() >= 0
    p_value = one_sided_p_value(new - old) if recognises and agrees else 1.0
    return TestResult("information", p_value, float(old.mean()), float(new.mean()))


def information_of_views(views: Views, prior: Array | None = None) -> Array:
    """The contribution of each image to the mutual information, mean of its two views."""
    first, second = views
    both = information_against(first, prior) + information_against(second, prior)
    contributions: Array = both / 2
    return contributions


def consistency_test(evidence: Evidence) -> TestResult:
    """Whether two views match better than views of different images, and agree as often as before.

    This also detects gains that make an over-confident model less confident.
    """
    before, _, equal, scenes, _ = evidence
    test = _as_is_and_at_equal_confidence("consistency", matching_information_of_each, evidence)
    agreement = agreement_of_each(*equal) - agreement_of_each(*before)
    agrees = scene_means(agreement, scenes).mean() >= 0
    return test if agrees else test._replace(p_value=1.0)


def shared_test(evidence: Evidence) -> TestResult:
    """Whether two views share more information; this knows how frequent each class is."""
    name: Measure = "shared information"
    return _as_is_and_at_equal_confidence(name, shared_information_of_each, evidence)


def _as_is_and_at_equal_confidence(
    name: Measure,
    measure: Callable[[Array, Array], Array],
    evidence: Evidence,
) -> TestResult:
    """The gain must show as it is and at equal confidence: the larger p-value counts."""
    before, after, equal, scenes, _ = evidence
    old = scene_means(measure(*before), scenes)
    new = scene_means(measure(*after), scenes)
    at_equal_confidence = scene_means(measure(*equal), scenes)
    p_value = max(one_sided_p_value(new - old), one_sided_p_value(at_equal_confidence - old))
    return TestResult(name, p_value, float(old.mean()), float(new.mean()))


def one_sided_p_value(gains: Array) -> float:
    """How likely gains as large as these are if the true mean gain is at most `LEAST_GAIN`."""
    from scipy import stats  # slow to import, and a stored verdict does not need it

    error = standard_error(gains)
    if not error > 0:  # all gains are equal, or there is only one
        return 1.0
    return float(stats.t.sf((gains.mean() - LEAST_GAIN) / error, len(gains) - 1))


def standard_error(values: Array) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def at_confidence_of(views: Views, others: Views) -> Views:
    """The probabilities, tempered until their mean entropy equals that of the others.

    Parameters
    ----------
    views, others : pairs of arrays of shape (n, classes)

    Examples
    --------
    >>> views = (np.array([[0.9, 0.1]]), np.array([[0.8, 0.2]]))
    >>> others = (np.array([[0.6, 0.4]]), np.array([[0.6, 0.4]]))
    >>> first, second = at_confidence_of(views, others)
    >>> (entropy(first) + entropy(second)).round(3) == (2 * entropy(others[0])).round(3)
    array([ True])
    """
    goal = np.mean([entropy(rows).mean() for rows in others])
    first, second = (np.asarray(rows, np.float64) + LEAST_LIKELY for rows in views)
    low = -3.0  # logarithms of the exponent
    high = 3.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        exponent = np.exp(middle)
        entropies = [entropy(tempered(rows, exponent)).mean() for rows in (first, second)]
        if np.mean(entropies) > goal:
            low = middle
        else:
            high = middle
    exponent = np.exp((low + high) / 2)
    return tempered(first, exponent), tempered(second, exponent)

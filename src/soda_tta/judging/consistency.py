"""The tests behind a verdict: does the model recognise two views of an image as the same?"""

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
from soda_tta.objectives.equations import entropy
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

Views = tuple[Array, Array]  # probabilities for the images, and for the same images shifted
Measure = Literal["consistency", "shared information", "accuracy"]
LEAST_LIKELY = 1e-12  # a zero of a model that rounds its responses is not impossible
# Nats. The same probabilities, tempered back and forth, differ by rounding, all in one direction.
LEAST_GAIN = 1e-3
BISECTIONS = 30


class TestResult(NamedTuple):
    """What one measure says."""

    measure: Measure
    p_value: float
    before: float  # mean of the measure
    after: float


def consistency_test(before: Views, after: Views, equal: Views, scenes: Array) -> TestResult:
    """Whether two views match better, provided that they agree at least as often as before.

    Parameters
    ----------
    before, after, equal : pairs of arrays of shape (n, classes)
        Views without adaptation, with it, and with it at the confidence of `before`.
    scenes : integer array of shape (n,)
    """
    test = measured("consistency", matching_information_of_each, before, after, equal, scenes)
    agreement = agreement_of_each(*equal) - agreement_of_each(*before)
    agrees = scene_means(agreement, scenes).mean() >= 0
    return test if agrees else test._replace(p_value=1.0)


def information_test(before: Views, after: Views, equal: Views, scenes: Array) -> TestResult:
    """Whether two views share more information; the parameters are those of `consistency_test`."""
    measure = shared_information_of_each
    return measured("shared information", measure, before, after, equal, scenes)


def measured(
    name: Measure,
    measure: Callable[[Array, Array], Array],
    before: Views,
    after: Views,
    equal: Views,
    scenes: Array,
) -> TestResult:
    """The larger of the p-values as it is and at equal confidence, and the mean of the measure."""
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

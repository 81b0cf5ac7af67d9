"""Do two sets of answers come from one distribution? A permutation test, whose error rate holds for any sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.types import Array

LEVEL = 0.01  # one clean set in a hundred is called shifted
PERMUTATIONS = 999  # the smallest p-value is then 0.001
BEST, CLASSES = (
    5,
    30,
)  # how many of the highest probabilities, and of the most answered classes, are compared
NOTABLE = 0.03  # a fall of accuracy smaller than the estimate's own error is none


@dataclass(frozen=True)
class TwoSample:
    """`distance`: the largest Kolmogorov-Smirnov distance; `p_value`: how often chance alone reaches it."""

    distance: float
    p_value: float


def two_sample_test(
    first: Array, second: Array, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> TwoSample:
    """The largest Kolmogorov-Smirnov distance over several views of the answers, judged by shuffling the two sets.

    All views are shuffled together, so that no correction for their number is needed. If both sets come from one
    distribution, a p-value below any level is no more frequent than that level, whatever the distribution.

    >>> rows = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    >>> two_sample_test(rows[:30], rows[30:]).p_value > 0.05, two_sample_test(rows[:30], np.eye(3)[[0] * 30]).p_value
    (True, 0.001)
    """
    views = _views(np.concatenate([first, second]).astype(np.float64))
    weights = np.concatenate(
        [np.full(len(first), 1 / len(first)), np.full(len(second), -1 / len(second))]
    )
    generator = np.random.default_rng(seed)
    columns = np.stack(
        [weights, *(generator.permutation(weights) for _ in range(permutations))], axis=1
    )
    largest = np.zeros(permutations + 1)
    for view in views.T:
        order = np.argsort(view, kind="stable")
        ends = np.append(
            np.diff(view[order]) > 0, True
        )  # between equal values there is nothing to compare
        largest = np.maximum(largest, np.abs(np.cumsum(columns[order], axis=0)[ends]).max(axis=0))
    reached = np.sum(
        largest[1:] >= largest[0] - 1e-9
    )  # a tie counts for chance, so that the level holds
    return TwoSample(float(largest[0]), float((1 + reached) / (1 + permutations)))


def _views(rows: Array) -> Array:
    """How sure the answers are (highest probabilities, entropy), and of what (probabilities of classes).

    Which classes are looked at is decided by both sets together, or the shuffling would not be fair.
    """
    best = -np.sort(-rows, axis=1)[:, :BEST]
    entropy = -(rows * np.log(rows + 1e-12)).sum(axis=1, keepdims=True)
    classes = np.argsort(-rows.mean(axis=0), kind="stable")[:CLASSES]
    return np.concatenate([best, entropy, rows[:, classes]], axis=1)


def shift(answers: Array, clean: Array, *, now: float, usual: float, seed: int = 0) -> Finding:
    """Adapting undoes a shift; where there is none it can only harm. `now`, `usual`: estimates of accuracy."""
    test = two_sample_test(answers, clean, seed=seed)
    numbers = {
        "p_value": test.p_value,
        "level": LEVEL,
        "distance": test.distance,
        "estimated_accuracy": now,
        "estimated_clean_accuracy": usual,
        "images": len(answers),
        "clean": len(clean),
    }
    told = (
        f"p = {test.p_value:.3g} (permutation test on the answers, {len(answers)} against {len(clean)} clean images; "
        f"wrong alarms at most {LEVEL:.0%})"
    )
    if test.p_value > LEVEL:
        return Finding(
            name="shift",
            state="bad",
            sentence=f"The model answers these images as it answers the clean ones: {told}.",
            numbers=numbers,
            remedy="Leave the images as they are: without a shift, adapting can only harm. A slight shift needs more "
            "images to be seen.",
        )
    fall = f"estimated accuracy {now:.0%}, on the clean ones {usual:.0%}"
    if usual - now < NOTABLE:
        return Finding(
            name="shift",
            state="caution",
            sentence=f"The answers differ from the clean ones, but hardly in accuracy ({fall}): {told}.",
            numbers=numbers,
            remedy="Look whether the classes are other ones than in the clean folder; that is nothing an image "
            "adaptor can undo.",
        )
    return Finding(
        name="shift",
        state="good",
        sentence=f"The images are shifted ({fall}): {told}.",
        numbers=numbers,
    )

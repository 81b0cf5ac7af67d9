"""Shift check: do the responses to two sets of images come from the same distribution?

The check is a permutation test, so its rate of false alarms holds for samples of any size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.types import Array
from soda_tta.wording import counted

LEVEL = 0.01  # one clean set in a hundred is called shifted
PERMUTATIONS = 999  # the smallest p-value is then 0.001
HIGHEST = 5  # how many of the highest probabilities are compared
CLASSES = 30  # how many of the most probable classes are compared
NOTABLE = 0.03  # a smaller drop of the agreement is within its error


@dataclass(frozen=True)
class TwoSample:
    """The largest Kolmogorov-Smirnov distance, and how often chance alone reaches it."""

    distance: float
    p_value: float


def two_sample_test(
    first: Array, second: Array, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> TwoSample:
    """Compare the responses to two sets of images by a permutation test.

    The statistic is the largest Kolmogorov-Smirnov distance over several views of the responses.
    All views are permuted together, so no correction for their number is needed. If both sets
    come from one distribution, a p-value below a level occurs at most at the rate of that level.

    Parameters
    ----------
    first, second : array, shape (images, classes)
        Probabilities.
    permutations : int, default=999
        Random divisions of the responses into two sets.
    seed : int, default=0
        Seed of the permutations.

    Examples
    --------
    >>> rows = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    >>> two_sample_test(rows[:30], rows[30:]).p_value > 0.05
    True
    >>> two_sample_test(rows[:30], np.eye(3)[[0] * 30]).p_value
    0.001
    """
    views = _views(np.concatenate([first, second]).astype(np.float64))
    weights = np.concatenate(
        [np.full(len(first), 1 / len(first)), np.full(len(second), -1 / len(second))]
    )
    generator = np.random.default_rng(seed)
    permuted = [generator.permutation(weights) for _ in range(permutations)]
    columns = np.stack([weights, *permuted], axis=1)
    largest = np.zeros(permutations + 1)
    for view in views.T:
        order = np.argsort(view, kind="stable")
        # distribution functions are compared only at the last of equal values
        is_last = np.append(np.diff(view[order]) > 0, True)
        distances = np.abs(np.cumsum(columns[order], axis=0)[is_last]).max(axis=0)
        largest = np.maximum(largest, distances)
    # a tie counts as reached, so that the level holds
    reached = np.sum(largest[1:] >= largest[0] - 1e-9)
    return TwoSample(float(largest[0]), float((1 + reached) / (1 + permutations)))


def _views(rows: Array) -> Array:
    """The highest probabilities, the entropy, and the probabilities of some classes.

    Both sets together decide which classes are compared, or the permutations would not be fair.
    """
    highest = -np.sort(-rows, axis=1)[:, :HIGHEST]
    entropy = -(rows * np.log(rows + 1e-12)).sum(axis=1, keepdims=True)
    classes = np.argsort(-rows.mean(axis=0), kind="stable")[:CLASSES]
    return np.concatenate([highest, entropy, rows[:, classes]], axis=1)


def check_shift(
    probabilities: Array,
    clean: Array,
    *,
    agreement: float,
    clean_agreement: float,
    seed: int = 0,
) -> Finding:
    """Whether the images are shifted: adapting undoes a shift, and harms without one.

    `clean` are the responses to clean images. The agreements are `agreement_score` of both sets:
    how confidently each is divided evenly among the classes.
    """
    test = two_sample_test(probabilities, clean, seed=seed)
    measurements = {
        "p_value": test.p_value,
        "level": LEVEL,
        "distance": test.distance,
        "agreement": agreement,
        "clean_agreement": clean_agreement,
        "images": len(probabilities),
        "clean_images": len(clean),
    }
    summary = (
        f"p = {test.p_value:.3g} (permutation test on the responses to "
        f"{counted(len(probabilities), 'image')} and {counted(len(clean), 'clean image')}; "
        f"false alarms at most {LEVEL:.0%})"
    )
    if test.p_value > LEVEL:
        return Finding(
            name="shift",
            state="bad",
            sentence=f"The model responds to these images as to the clean ones: {summary}.",
            measurements=measurements,
            remedy="Leave the images as they are: without a shift, adapting can only harm. More "
            "images are needed to detect a slight shift.",
        )
    scores = f"confident, evenly spread predictions: {agreement:.0%}, clean {clean_agreement:.0%}"
    if clean_agreement - agreement < NOTABLE:
        return Finding(
            name="shift",
            state="caution",
            sentence="The responses differ from those to clean images, but are as good "
            f"({scores}): {summary}.",
            measurements=measurements,
            remedy="Check whether the clean images show other classes. An image adaptor cannot "
            "undo that.",
        )
    return Finding(
        name="shift",
        state="good",
        sentence=f"The images are shifted ({scores}): {summary}.",
        measurements=measurements,
    )

"""Do two sets of answers come from one distribution? A permutation test, exact for any number of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.estimate import estimate_accuracy

Array = np.ndarray[Any, np.dtype[Any]]
LEVEL = 0.01  # one clean set in a hundred is called shifted
PERMUTATIONS = 999  # the smallest p-value is then 0.001
NOTABLE = 0.03  # a fall of accuracy smaller than the estimate's own error is none
WIDTHS = (0.25, 1.0, 4.0)  # times the median squared distance: fine, middling and broad differences


@dataclass(frozen=True)
class TwoSample:
    """`discrepancy`: the squared maximum mean discrepancy; `p_value`: how often chance alone reaches it."""

    discrepancy: float
    p_value: float


def two_sample_test(first: Array, second: Array, *, permutations: int = PERMUTATIONS, seed: int = 0) -> TwoSample:
    """Maximum mean discrepancy between two sets of probability rows, judged by shuffling which set a row is from.

    Rows are compared by Hellinger distance, which sees small probabilities too. If both sets come from one
    distribution, a p-value below any level is no more frequent than that level, whatever the distribution.

    >>> rows = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    >>> two_sample_test(rows[:30], rows[30:]).p_value > 0.05, two_sample_test(rows[:30], np.eye(3)[[0] * 30]).p_value
    (True, 0.001)
    """
    kernel = _kernel(np.sqrt(np.concatenate([first, second]).astype(np.float64)))
    weights = np.concatenate([np.full(len(first), 1 / len(first)), np.full(len(second), -1 / len(second))])
    generator = np.random.default_rng(seed)
    columns = np.stack([weights, *(generator.permutation(weights) for _ in range(permutations))], axis=1)
    values = (columns * (kernel @ columns)).sum(axis=0)
    reached = np.sum(values[1:] >= values[0] - 1e-12)  # a tie counts for chance, so that the level holds
    return TwoSample(float(values[0]), float((1 + reached) / (1 + permutations)))


def _kernel(points: Array) -> Array:
    squares = (points**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * points @ points.T, 0)
    apart = distances[distances > 1e-12]
    middle = float(np.median(apart)) if len(apart) else 1.0
    kernel: Array = sum((np.exp(-distances / (width * middle)) for width in WIDTHS), np.zeros_like(distances))
    return kernel / len(WIDTHS)


def shift(answers: Array, clean: Array, seed: int = 0) -> Finding:
    """Adapting undoes a shift; where there is none it can only harm."""
    test = two_sample_test(answers, clean, seed=seed)
    usual, now = estimate_accuracy(clean).accuracy, estimate_accuracy(answers).accuracy
    numbers = {
        "p_value": test.p_value,
        "level": LEVEL,
        "discrepancy": test.discrepancy,
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
    return Finding(name="shift", state="good", sentence=f"The images are shifted ({fall}): {told}.", numbers=numbers)

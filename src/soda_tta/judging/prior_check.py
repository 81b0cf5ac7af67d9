"""Whether a stated class prior contradicts what the model answers with confidence."""

from __future__ import annotations

import numpy as np

from soda_tta.judging.balanced import chance_excess
from soda_tta.types import Array

CONFIDENT = 0.99
LIKELY = 0.5
FEWEST = 20  # confident answers; fewer say nothing
# Both limits must be exceeded. They were chosen on six corruptions of CIFAR-10, adapted. With the
# true prior stated, none of 64 sets of images exceeded both. With a balanced one stated, nine of
# ten did whose class shares are drawn at random (Dirichlet, 1), and all with 90 % of two classes.
FARTHEST = 0.12  # of the shares among confident answers from the prior, beyond chance
MOST_EXCESS = 0.08  # of the images: likely answers of classes beyond what there can be of them


def contradiction(rows: Array, prior: Array) -> str | None:
    """What speaks against a stated prior, as a sentence; None if nothing does.

    Answers that are wrong although they are confident speak against a true prior too, most often
    where images were not adapted. The sentence therefore names both.

    Parameters
    ----------
    rows : array of shape (n, classes)
        Probabilities, before they are matched to the prior.
    prior : array of shape (classes,)

    Examples
    --------
    >>> rows = np.eye(4)[[0] * 90 + [1, 2, 3] * 3] * 0.996 + 0.001
    >>> print(contradiction(rows, np.full(4, 0.25))[:60])
    The stated class prior does not fit the model's confident an
    >>> even = np.eye(4)[np.arange(100) % 4] * 0.996 + 0.001
    >>> contradiction(even, np.full(4, 0.25)) is None
    True
    """
    confident = rows[rows.max(axis=1) >= CONFIDENT]
    if len(confident) < FEWEST:
        return None
    counts = np.bincount(confident.argmax(axis=1), minlength=rows.shape[1])
    excess = counts / len(confident) - prior
    distance = float(np.clip(excess, 0, None).sum()) - chance_excess(len(confident), prior)
    if distance <= FARTHEST or impossible(rows, prior) <= MOST_EXCESS:
        return None
    often = int(excess.argmax())
    share = counts[often] / len(confident)
    return (
        f"The stated class prior does not fit the model's confident answers: of {len(confident):,} "
        f"answers with a probability of {CONFIDENT:.0%} or more, {share:.0%} are "
        f"class {often}, whose stated share is {prior[often]:.1%}. Either the prior is wrong, "
        "and matching the answers to it does harm, or the model is confidently wrong. Check it on "
        "some labels, or leave it out (prior='unknown')."
    )


def impossible(rows: Array, prior: Array) -> float:
    """The share of images whose likely answers exceed, class by class, what the prior allows."""
    likely = rows[rows.max(axis=1) >= LIKELY].argmax(axis=1)
    shares = np.bincount(likely, minlength=rows.shape[1]) / len(rows)
    return float(np.clip(shares - prior, 0, None).sum()) - chance_excess(len(rows), prior)

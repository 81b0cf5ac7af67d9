"""The verdict of labelled images: better evidence than any measure without labels."""

from __future__ import annotations

import numpy as np

from soda_tta.judging.scene_means import scene_count, scene_means
from soda_tta.judging.verdict import Verdict, counted, percent
from soda_tta.types import Array
from soda_tta.wording import counted as counted_noun

HARM_LEVEL = 0.05  # a loss needs less proof than a gain: keeping the images as they are is safe


def judge_labelled(
    before: Array,
    after: Array,
    labels: Array,
    *,
    level: float,
    scenes: Array | None = None,
    otherwise: Verdict | None = None,
) -> Verdict:
    """Decide by labels: an exact test of the newly right images against the newly wrong ones.

    A significant gain is adopted and a significant loss is not. If the labels show neither, the
    verdict without labels stands.

    Parameters
    ----------
    before, after : arrays of shape (n, classes)
        Probabilities without and with adaptation, for labelled images that the search did not use.
    labels : integer array of shape (n,)
        The true classes.
    level : float in (0, 1)
        Accepted rate of wrong adoptions.
    scenes : integer array of shape (n,), optional
        The scene of each image; by default each image is independent.
    otherwise : Verdict, optional
        The verdict without labels.

    Examples
    --------
    >>> labels = np.array([0, 1] * 10)
    >>> always_first = np.eye(2)[[0] * 20]
    >>> print(judge_labelled(always_first, np.eye(2)[labels], labels, level=0.01).sentence)
    Adopt: on 20 independent labelled images that the search did not use, accuracy went from 50% \
to 100%; 10 images became right and 0 wrong (the chance of this without a real gain is 0.098%).
    """
    from scipy import stats

    numbers = np.arange(len(labels)) if scenes is None else scenes
    right_before = before.argmax(axis=1) == labels
    right_after = after.argmax(axis=1) == labels
    net = scene_means(right_after.astype(float) - right_before.astype(float), numbers)
    gained = int((net > 0).sum())
    lost = int((net < 0).sum())
    p_gain = float(stats.binom.sf(gained - 1, gained + lost, 0.5))
    p_loss = float(stats.binom.sf(lost - 1, gained + lost, 0.5))
    helps = p_gain <= level
    harms = p_loss <= HARM_LEVEL
    independent = scene_count(numbers)
    images = counted(len(labels), independent).replace("images", "labelled images")
    unit = "image" if independent == len(labels) else "scene"
    accuracy = f"from {right_before.mean():.0%} to {right_after.mean():.0%}" if len(labels) else "-"
    facts = (
        f"on {images} that the search did not use, accuracy went {accuracy}; "
        f"{counted_noun(gained, unit)} became right and {lost} wrong"
    )
    adopt = helps
    if helps:
        sentence = f"Adopt: {facts} (the chance of this without a real gain is {percent(p_gain)})."
    elif harms:
        sentence = f"Keep: {facts} (the chance of this without a real loss is {percent(p_loss)})."
    else:
        adopt = otherwise is not None and otherwise.adopt
        verb = "Adopt" if adopt else "Keep"
        stands = f" The verdict without labels stands. {otherwise.sentence}" if otherwise else ""
        sentence = f"{verb}: the labels do not decide: {facts}.{stands}"
    return Verdict(
        adopt=adopt,
        sentence=sentence,
        before=float(right_before.mean()) if len(labels) else 0.0,
        after=float(right_after.mean()) if len(labels) else 0.0,
        p_value=p_gain,
        level=level,
        images=len(labels),
        independent=independent,
        basis="labels",
        measure="accuracy",
    )

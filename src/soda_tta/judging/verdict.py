"""Whether to deploy what was learned, decided on images that the search did not use."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from soda_tta.adaptors.answering import moved as moved
from soda_tta.judging.measures import (
    Evidence,
    Measure,
    Views,
    at_confidence_of,
    consistency_test,
    information_test,
    shared_test,
)
from soda_tta.judging.scene_means import scene_count
from soda_tta.types import Array

Basis = Literal["responses", "labels", "user"]
PER_CLASS = 5  # with fewer independent images per class, shared information says nothing
# The share of each test in the accepted rate of wrong adoptions.
SHARES = {information_test: 1 / 2, consistency_test: 1 / 4, shared_test: 1 / 4}
SHARES_WITH_FEW_IMAGES = {information_test: 2 / 3, consistency_test: 1 / 3}
FEWEST = 10  # independent images; nothing can be concluded from fewer


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether to adopt the adaptor or to keep the original images.

    Parameters
    ----------
    adopt : bool
        True: deploy the adaptor. False: keep the original images.
    sentence : str
        The verdict for a person: "Adopt: ..." or "Keep: ...".
    before, after : float
        The measure, without and with adaptation: information, consistency or shared information, in
        nats (see `judge`), or the accuracy on labelled images, as a share of 1.
    p_value : float
        How likely such a gain is by chance.
    level : float
        Without a real gain, the adaptor is adopted at most at this rate.
    images : int
        Number of images judged.
    independent : int, optional
        Number of scenes among them: near copies of an image count once. None if not counted.
    basis : str, default "responses"
        What decided: the responses alone, labels, or the user.
    measure : str, default "information"
        What `before` and `after` are.
    """

    adopt: bool
    sentence: str
    before: float
    after: float
    p_value: float
    level: float
    images: int
    independent: int | None = None
    basis: Basis = "responses"
    measure: Measure = "information"

    def facts(self) -> dict[str, Any]:
        """All fields, as plain JSON."""
        return asdict(self)


def judge(
    before: Views,
    after: Views,
    level: float,
    *,
    scenes: Array | None = None,
    candidates: int = 1,
    prior: Array | None = None,
) -> Verdict:
    """Test whether the model tells images apart better with adaptation than without.

    The tests are one-sided and paired, and their unit is the scene: the gains of near copies are
    averaged first. Three measures are tested, and any of them may show the gain; each has its share
    of the accepted rate. *Information* is what the search maximises, under conditions that more
    confidence alone does not meet. *Consistency* is how much better two views of an image match
    than views of different images. *Shared information* of two views knows the frequency of the
    classes; it takes part only if there are enough images of each class.

    Parameters
    ----------
    before : two arrays of shape (n, classes)
        Probabilities for the original images, and for these images shifted (see `moved`).
    after : two arrays of shape (n, classes)
        The same for the adapted images.
    level : float in (0, 1)
        Adopt if the p-value is at most this.
    scenes : integer array of shape (n,), optional
        The scene of each image; by default each image is independent.
    candidates : int, default 1
        How many adaptors are judged; the p-value is multiplied by this.
    prior : array of shape (classes,), optional
        The share of each class, if it was stated: information counts against it.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.1, 0.9]] * 20)
    >>> same = (probabilities, probabilities)
    >>> judge(same, same, level=0.01).adopt
    False
    """
    images, classes = before[0].shape
    numbers = np.arange(images) if scenes is None else scenes
    independent = scene_count(numbers)
    equal = at_confidence_of(after, before)
    shares = SHARES if independent >= PER_CLASS * classes else SHARES_WITH_FEW_IMAGES
    evidence = Evidence(before, after, equal, numbers, prior)
    tests = [test(evidence) for test in shares]
    p_values = [test.p_value / share for test, share in zip(tests, shares.values(), strict=True)]
    best = int(np.argmin(p_values))
    p_value = min(1.0, candidates * p_values[best]) if independent >= FEWEST else 1.0
    verdict = Verdict(
        adopt=p_value <= level,
        sentence="",
        before=tests[best].before,
        after=tests[best].after,
        p_value=p_value,
        level=level,
        images=images,
        independent=independent,
        measure=tests[best].measure,
    )
    return replace(verdict, sentence=sentence_of(verdict))


def sentence_of(verdict: Verdict) -> str:
    """A verdict on the responses for a person."""
    images = counted(verdict.images, verdict.independent)
    where = f"on {images} that the search did not use"
    if verdict.independent is not None and verdict.independent < FEWEST:
        return (
            f"Keep: nothing can be concluded {where}; near copies of an image count once, and at "
            f"least {FEWEST} independent images are needed."
        )
    change = f"{verdict.measure} {verdict.before:.2f} before, {verdict.after:.2f} after"
    chance = f"the chance of such a result without a real gain is {percent(verdict.p_value)}"
    if verdict.adopt:
        return (
            f"Adopt: {where}, the model tells images apart better than before ({change}; {chance})."
        )
    return (
        f"Keep: {where}, the model does not clearly tell images apart better than before "
        f"({change}; {chance}, and {percent(verdict.level)} is accepted)."
    )


def counted(images: int, independent: int | None) -> str:
    """How many images, and how many of them are independent.

    >>> counted(30, 30), counted(400, 20)
    ('30 independent images', '400 images of 20 scenes')
    """
    if independent is None:
        return f"{images:,} images"
    if images == independent:
        return f"{images:,} independent images"
    return f"{images:,} images of {independent:,} scenes"


def percent(share: float) -> str:
    """A probability for a person.

    >>> percent(0.034), percent(1e-9), percent(1.0)
    ('3.4%', 'below 0.01%', '100%')
    """
    if share < 1e-4:
        return "below 0.01%"
    return f"{100 * share:.2g}%" if share < 0.995 else "100%"

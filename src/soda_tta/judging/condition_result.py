"""What came of one condition of a mixed set of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.judging.candidate import Candidate
from soda_tta.judging.verdict import Verdict

BY_RESPONSES = (
    "on images that the search did not use, the model tells them apart better than before"
)
BY_LABELS = "on labelled images that the search did not use, more answers are right than before"
UNDECIDED = "the labels do not decide, and the verdict without labels stands"
BY_USER = "accepted by the user"


@dataclass(frozen=True, kw_only=True)
class ConditionResult:
    """One condition: what it looks like, and whether an adaptor was adopted for it.

    Parameters
    ----------
    words : str
        What its images look like.
    images : int
        How many there are.
    examples : tuple of int
        Places of typical ones.
    verdict : Verdict, optional
        Whether to deploy what was found; None if nothing was found.
    candidate : Candidate, optional
        What was found, with the responses that judged it.
    """

    words: str
    images: int
    examples: tuple[int, ...] = ()
    verdict: Verdict | None = None
    candidate: Candidate | None = None

    @property
    def adopted(self) -> bool:
        """Whether images of this condition are adapted."""
        return self.verdict is not None and self.verdict.adopt

    @property
    def found(self) -> Adaptor:
        """What the search found, adopted or not."""
        return Identity() if self.candidate is None else self.candidate.adaptor

    @property
    def adaptor(self) -> Adaptor:
        """What is done to images of this condition."""
        return self.found if self.adopted else Identity()

    def facts(self) -> dict[str, Any]:
        """Everything but the responses, as plain JSON."""
        return {
            "words": self.words,
            "images": self.images,
            "examples": list(self.examples),
            "verdict": None if self.verdict is None else self.verdict.facts(),
            "adaptor": self.adaptor.describe(),
        }


def holm(p_values: list[float]) -> list[float]:
    """P-values adjusted for their number (Holm, 1979), in the same order.

    At most at the accepted rate is any true hypothesis rejected, however many are tested.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.maximum.accumulate(np.asarray(p_values)[order] * factors).clip(max=1.0)
    result = np.empty(len(p_values))
    result[order] = adjusted
    return [float(round(value, 12)) for value in result]


def overall_verdict(results: Sequence[ConditionResult]) -> Verdict | None:
    """The verdict on all conditions together, in one sentence; None if nothing was judged.

    An adaptor is deployed if one of the conditions has one. The p-value is the smallest: those of
    the conditions are adjusted for their number already.
    """
    judged = [result for result in results if result.verdict is not None]
    if not judged:
        return None
    verdicts = [result.verdict for result in judged if result.verdict is not None]
    clearest = min(verdicts, key=lambda verdict: verdict.p_value)
    adopted = [result for result in results if result.adopted]
    return replace(
        clearest,
        adopt=bool(adopted),
        sentence=overall_sentence(results, adopted),
        images=sum(verdict.images for verdict in verdicts),
        independent=sum(verdict.independent or 0 for verdict in verdicts),
    )


def overall_sentence(results: Sequence[ConditionResult], adopted: Sequence[ConditionResult]) -> str:
    """Which conditions are adapted, and what that rests on, for a person."""
    if not adopted:
        verdicts = [result.verdict for result in results if result.verdict is not None]
        better = "does the model clearly tell images apart better than before"
        if any(verdict.basis == "labels" for verdict in verdicts):
            better = "are clearly more answers right than before"
        return f"Keep: in none of {len(results)} conditions {better}."
    share = sum(result.images for result in adopted) / sum(result.images for result in results)
    names = "; ".join(result.words for result in adopted)
    which = f"{len(adopted)} of {len(results)} conditions"
    if len(adopted) == len(results):
        which = f"all {len(results)} conditions"
    # Conditions may differ in it: not all have enough labels.
    reasons = dict.fromkeys(reason_of(result.verdict) for result in adopted if result.verdict)
    return f"Adopt for {which}, {share:.0%} of the images ({names}): {'; or '.join(reasons)}."


def reason_of(verdict: Verdict) -> str:
    """What an adoption rests on."""
    if verdict.basis == "user":
        return BY_USER
    if verdict.basis == "labels":
        return BY_LABELS if verdict.p_value <= verdict.level else UNDECIDED
    return BY_RESPONSES

"""The gate: whether an adaptor may answer live traffic, and whether it may go on doing so."""

from __future__ import annotations

import numpy as np

from soda_tta.judging.paired_gain import PairedGain
from soda_tta.judging.sequential import Capital
from soda_tta.storage.named_arrays import below, part_of
from soda_tta.types import Array

# The views of an image may agree a little less often than before where much else is gained: a model
# that answers one class for everything agrees with itself. Where predictions merely split up into
# more classes, which on unbalanced images is harm, agreement falls more than this share of the gain
# (benchmarks/verdicts.py, its balanced and unbalanced image sets).
AGREEMENT_LOST = 0.08
WORTH = 0.02  # of the largest gain of an image: an adaptor that gains less is of no use


class Gate:
    """Evidence for a candidate against the current adaptor, looked at after every image.

    Parameters
    ----------
    level : float
        The chance that a candidate without a gain is ever promoted.

    Examples
    --------
    >>> gate = Gate(0.01)
    >>> gate.passed, gate.images
    (False, 0)
    """

    def __init__(self, level: float) -> None:
        self.level = level
        self.gains = PairedGain()
        self.capital = Capital()
        self.matching = 0.0  # sums over images
        self.agreement = 0.0

    def add(self, current: Array, candidate: Array) -> None:
        """Responses to two views of one image that the candidate was not found on, (2, classes)."""
        gain = self.gains.add(champion=current, challenger=candidate)
        if gain is None:
            return
        self.matching += gain.matching
        self.agreement += gain.agreement
        self.capital.add(gain.matching)

    @property
    def images(self) -> int:
        """Images that were evidence, including those that calibrate."""
        return self.gains.count

    @property
    def gain(self) -> float:
        """The mean gain, in units of the largest gain of one image."""
        return self.matching / max(1, self.capital.count)

    @property
    def agrees(self) -> bool:
        """Whether views agree about as often as before."""
        return self.agreement >= -AGREEMENT_LOST * max(0.0, self.matching)

    @property
    def passed(self) -> bool:
        """Whether the candidate may be promoted."""
        return self.capital.reaches(self.level) and self.gain > 0 and self.agrees

    @property
    def hopeless(self) -> bool:
        """Whether the candidate is so clearly not better that testing it further is a waste."""
        doubts = self.capital.count >= 32 and self.gain <= 0
        return doubts and self.capital.value < 0.5

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        arrays = below("gains.", self.gains.state())
        arrays |= below("capital.", self.capital.state())
        arrays["sums"] = np.array([self.level, self.matching, self.agreement])
        return arrays

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self.gains.restore(part_of(state, "gains."))
        self.capital.restore(part_of(state, "capital."))
        self.level, self.matching, self.agreement = state["sums"].tolist()


class Watch:
    """Evidence that a promoted adaptor stopped winning against the images as they are.

    Without a change, a rollback comes after at least `1 / level` watched images on average. It
    costs a gain and never an answer that is worse than the model's own.

    Parameters
    ----------
    level : float
        One over the average number of watched images until a rollback for no reason.
    """

    def __init__(self, level: float) -> None:
        self.level = level
        self.gains = PairedGain()
        self.capital = Capital(restarting=True)
        self.recent = 0.0  # mean gain of the adaptor, the latest images count most

    def add(self, unadapted: Array, adapted: Array) -> None:
        """Responses to two views of one image, as it is and adapted, (2, classes) each."""
        gain = self.gains.add(champion=unadapted, challenger=adapted)
        if gain is None:
            return
        self.recent += (gain.matching - self.recent) / min(self.capital.count + 1, 64)
        self.capital.add(float(np.clip(WORTH - gain.matching, -1, 1)))

    @property
    def images(self) -> int:
        """Images that were watched."""
        return self.gains.count

    @property
    def suspicious(self) -> bool:
        """Whether more images should be watched, to know soon."""
        return self.capital.value > 3

    @property
    def failed(self) -> bool:
        """Whether to roll back."""
        return self.capital.reaches(self.level)

    @property
    def reason(self) -> str:
        """Why to roll back."""
        if self.recent < -WORTH:
            return "the model recognises the images better as they are"
        return "the model recognises the images as well as they are"

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        arrays = below("gains.", self.gains.state())
        arrays |= below("capital.", self.capital.state())
        arrays["sums"] = np.array([self.level, self.recent])
        return arrays

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self.gains.restore(part_of(state, "gains."))
        self.capital.restore(part_of(state, "capital."))
        self.level, self.recent = state["sums"].tolist()

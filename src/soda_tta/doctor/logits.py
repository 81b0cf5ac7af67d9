"""Whether a softmax was applied to what already is probabilities."""

from __future__ import annotations

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.types import Array

TOLERANCE = 1e-4  # of a probability, after the softmax and back


def check_logits(probabilities: Array) -> Finding | None:
    """Whether the softmax was applied to probabilities; None if the model does return logits.

    Logits are known up to a constant. If one makes every row probabilities, they were.

    >>> check_logits(np.exp([[0.9, 0.1]]) / np.exp([[0.9, 0.1]]).sum()).state
    'bad'
    >>> check_logits(np.exp([[5.0, 0.1]]) / np.exp([[5.0, 0.1]]).sum()) is None
    True
    """
    logits = np.log(np.maximum(probabilities.astype(np.float64), 1e-30))
    returned = logits - logits.mean(axis=1, keepdims=True) + 1 / logits.shape[1]
    if returned.min() < -TOLERANCE or returned.max() > 1 + TOLERANCE:
        return None
    return Finding(
        name="logits",
        state="bad",
        sentence="The model returns probabilities already, and the softmax was applied to them.",
        measurements={"smallest": float(returned.min()), "largest": float(returned.max())},
        remedy="Leave out logits=True.",
    )

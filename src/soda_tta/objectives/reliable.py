"""Which pseudo-labels to trust (paper, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.settings import setting
from soda_tta.types import Array

ROUNDING = 1e-9  # (1 - 0.9) * 1000 / 10 is 9.999... in binary, and must count as 10


@dataclass(frozen=True)
class Selection:
    """For every image its pseudo-label and whether it is reliable, in the order of the images.

    Parameters
    ----------
    labels : integer array of shape (n,)
        Pseudo-labels.
    reliable : boolean array of shape (n,)
        Which of them are trusted.
    aligned : bool, default True
        False repeats a mistake of the released code; see `Reliable`.
    """

    labels: Array
    reliable: Array
    aligned: bool = True

    def of(self, indices: Array) -> tuple[Array, Array]:
        """The labels of the images at `indices`, and which of them are reliable."""
        labels = self.labels[indices]
        reliable = self.reliable[indices]
        if not self.aligned:
            labels[reliable] = np.sort(labels[reliable])
        return labels, reliable


@dataclass(frozen=True, kw_only=True)
class Reliable:
    """Trust the most confident pseudo-labels of each class.

    A pseudo-label is reliable if its confidence exceeds `tau` and it is among the
    floor((1 - rho) n / C) most confident ones of its class.

    Parameters
    ----------
    tau : float in [0, 1], default 0.9
        Confidence that a reliable pseudo-label must exceed.
    rho : float in [0, 1], default 0.9
        Share of each class that is left out.
    aligned : bool, default True
        False repeats a mistake of the released code, to measure its cost: in every batch the
        reliable labels are sorted by class while the images keep their order, so that few images
        have their own label.

    Examples
    --------
    >>> probabilities = np.array([[0.95, 0.05], [0.6, 0.4], [0.08, 0.92], [0.3, 0.7]])
    >>> Reliable(tau=0.9, rho=0.5)(probabilities).reliable.tolist()
    [True, False, True, False]
    """

    tau: float = setting(0.9, "confidence that a trusted pseudo-label must exceed")
    rho: float = setting(
        0.9, "share of each class to leave out, least confident first: (1 - rho) n / C are kept"
    )
    aligned: bool = setting(
        True, "false repeats a mistake of the released code: trusted labels of other images"
    )

    def __post_init__(self) -> None:
        if not (0 <= self.tau <= 1 and 0 <= self.rho <= 1):
            raise MethodError(f"tau={self.tau} and rho={self.rho} must lie in [0, 1].")

    def __call__(self, probabilities: Array) -> Selection:
        images, classes = probabilities.shape
        labels = probabilities.argmax(axis=1)
        confidence = probabilities.max(axis=1)
        most = int((1 - self.rho) * images / classes + ROUNDING)
        reliable = np.zeros(images, bool)
        for label in range(classes):
            candidates = np.flatnonzero((labels == label) & (confidence > self.tau))
            # a stable sort: among equal confidences the earlier image comes first
            by_confidence = np.argsort(-confidence[candidates], kind="stable")
            reliable[candidates[by_confidence[:most]]] = True
        return Selection(labels, reliable, self.aligned)

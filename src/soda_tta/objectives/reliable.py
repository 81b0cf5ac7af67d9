"""Which pseudo-labels to trust (paper, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.types import Array


@dataclass(frozen=True)
class Selection:
    """For every image its pseudo-label and whether it is trusted; both in the order of the images."""

    labels: Array
    reliable: Array
    aligned: bool = True

    def of(self, indices: Array) -> tuple[Array, Array]:
        """The labels of some images, and which of them are trusted."""
        labels, reliable = self.labels[indices], self.reliable[indices]
        if not self.aligned:
            labels[reliable] = np.sort(labels[reliable])
        return labels, reliable


@dataclass(frozen=True, kw_only=True)
class Reliable:
    """Trust a pseudo-label above confidence `tau` that is among the floor((1 - rho) n / C) surest of its class.

    `aligned=False` repeats a slip of the released code, to measure what it costs: in every batch the trusted labels
    come class by class beside images in their own order, so that few images have their own label.
    """

    tau: float = 0.9
    rho: float = 0.9
    aligned: bool = True

    def __post_init__(self) -> None:
        if not (0 <= self.tau <= 1 and 0 <= self.rho <= 1):
            raise MethodError(f"tau {self.tau} and rho {self.rho} must lie in [0, 1].")

    def __call__(self, probabilities: Array) -> Selection:
        images, classes = probabilities.shape
        labels, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
        most = int(
            (1 - self.rho) * images / classes + 1e-9
        )  # 0.1 * 1000 / 10 is 9.999... in binary
        reliable = np.zeros(images, bool)
        for label in range(classes):
            candidates = np.flatnonzero((labels == label) & (confidence > self.tau))
            surest = np.argsort(-confidence[candidates], kind="stable")[
                :most
            ]  # ties: the earlier image
            reliable[candidates[surest]] = True
        return Selection(labels, reliable, self.aligned)


@dataclass(frozen=True)
class Queue:
    """The surest images of a stream with their pseudo-labels, at most size / C of each class (paper, SODA-O).

    A value: `push` gives another queue. Images stay in the order of their arrival.

    >>> answers = np.array([[0.95, 0.05], [0.99, 0.01], [0.6, 0.4]])
    >>> Queue(size=2).push(np.zeros((3, 3, 8, 8), np.float32), answers, tau=0.9).confidences
    array([0.99])
    """

    size: int = 1000
    images: Array = field(default_factory=lambda: np.zeros((0, 3, 0, 0), np.float32))
    labels: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    confidences: Array = field(default_factory=lambda: np.zeros(0))
    taken: Array = field(
        default_factory=lambda: np.zeros(0, bool)
    )  # which of the images pushed last are in it

    def __post_init__(self) -> None:
        if self.size < 0:
            raise MethodError(f"a queue of {self.size} images makes no sense; 0 is none.")

    def __len__(self) -> int:
        return len(self.labels)

    def push(self, images: Array, probabilities: Array, tau: float) -> Queue:
        """With the images answered above `tau`; of a class with too many, the least sure go, among equals the oldest.

        The oldest, for a stream drifts, and confidences that round to 1 would otherwise fill the queue for ever.
        """
        classes = probabilities.shape[1]
        if 0 < self.size < classes:
            raise MethodError(
                f"a queue of {self.size} has no place for each of {classes:,} classes; raise it, or use 0."
            )
        sure = probabilities.max(axis=1) > tau
        pool = images[sure] if not len(self) else np.concatenate([self.images, images[sure]])
        labels = np.concatenate([self.labels, probabilities[sure].argmax(axis=1)])
        confidences = np.concatenate([self.confidences, probabilities[sure].max(axis=1)])
        kept = np.zeros(len(labels), bool)
        for label in np.unique(labels):
            places = np.flatnonzero(labels == label)[::-1]
            surest = np.argsort(-confidences[places], kind="stable")[: self.size // classes]
            kept[places[surest]] = True
        taken = sure.copy()
        taken[sure] = kept[len(self) :]
        return Queue(self.size, pool[kept], labels[kept], confidences[kept], taken)

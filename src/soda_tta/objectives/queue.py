"""The queue of SODA-O: confident images that are kept from earlier batches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.settings import setting
from soda_tta.types import Array


def _no_images() -> Array:
    return np.zeros((0, 3, 0, 0), np.float32)


@dataclass(frozen=True)
class Queue:
    """The most confident images of a stream with their pseudo-labels, at most size / C per class.

    A queue is a value: `push` returns another queue. Images stay in the order of their arrival.

    Parameters
    ----------
    size : int, default 1000
        Images kept at most; 0 keeps none.
    images : float32 array of shape (m, 3, height, width)
        The images in the queue.
    labels : integer array of shape (m,)
        Their pseudo-labels.
    confidences : array of shape (m,)
        The probabilities of these labels.
    taken : boolean array
        Which of the images that were pushed last are in the queue.

    Examples
    --------
    >>> probabilities = np.array([[0.95, 0.05], [0.99, 0.01], [0.6, 0.4]])
    >>> images = np.zeros((3, 3, 8, 8), np.float32)
    >>> Queue(size=2).push(images, probabilities, tau=0.9).confidences
    array([0.99])
    """

    size: int = setting(1000, "confident images kept from earlier batches")
    images: Array = field(default_factory=_no_images)
    labels: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    confidences: Array = field(default_factory=lambda: np.zeros(0))
    taken: Array = field(default_factory=lambda: np.zeros(0, bool))

    def __post_init__(self) -> None:
        if self.size < 0:
            raise MethodError(f"a queue cannot hold {self.size} images; give 0 for no queue.")

    def __len__(self) -> int:
        return len(self.labels)

    def push(self, images: Array, probabilities: Array, tau: float) -> Queue:
        """Add the images whose confidence exceeds `tau`.

        If a class has too many images, the least confident are dropped, and among equally confident
        ones the oldest: a stream drifts, and confidences that round to 1 would otherwise fill the
        queue for ever.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width)
        probabilities : array of shape (n, classes)
        tau : float in [0, 1]
        """
        classes = probabilities.shape[1]
        if 0 < self.size < classes:
            raise MethodError(
                f"a queue of {self.size} images has no place for each of {classes:,} classes; "
                f"give at least {classes}, or 0 for no queue."
            )
        confident = probabilities.max(axis=1) > tau
        pool = images[confident]
        if len(self):
            pool = np.concatenate([self.images, pool])
        labels = np.concatenate([self.labels, probabilities[confident].argmax(axis=1)])
        confidences = np.concatenate([self.confidences, probabilities[confident].max(axis=1)])
        kept = np.zeros(len(labels), bool)
        for label in np.unique(labels):
            newest_first = np.flatnonzero(labels == label)[::-1]
            by_confidence = np.argsort(-confidences[newest_first], kind="stable")
            kept[newest_first[by_confidence[: self.size // classes]]] = True
        taken = confident.copy()
        taken[confident] = kept[len(self) :]
        return Queue(self.size, pool[kept], labels[kept], confidences[kept], taken)

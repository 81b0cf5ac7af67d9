"""LAME-prob: correct the answers by their neighbours, from probabilities alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method
from soda_tta.methods.tools import in_order
from soda_tta.settings import setting
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Neighbours(Method):
    """Laplacian adjusted maximum-likelihood estimation with neighbours among the probabilities.

    The published method uses the model's features, which a black box does not show: hence the name
    LAME-prob. Expect gains only where labels are correlated within a batch.
    """

    name: str = "lame"
    summary: str = "LAME-prob: answers corrected by their neighbours, without further queries."
    batch: int = setting(128, "images among which neighbours are searched")
    neighbours: int = setting(5, "neighbours of each image, found among the probabilities")
    weight: float = setting(1.0, "weight of the neighbours against the image's own answer")
    steps: int = setting(100, "steps of the correction, at most")

    def __post_init__(self) -> None:
        if self.batch < 1 or self.neighbours < 1 or self.steps < 1 or self.weight < 0:
            raise MethodError(
                f"{self.name} needs batch, neighbours and steps >= 1, and weight >= 0."
            )

    def answer(self, work: Work) -> Array:
        """Correct the probabilities of the first pass, batch by batch."""
        places = in_order(len(work.before), self.batch)
        rows = [self.correct(work.before[place]) for place in places]
        return np.concatenate(rows).astype(np.float32)

    def correct(self, probabilities: Array) -> Array:
        """One batch: iterate Y <- softmax(ln p + weight W Y) to its fixed point."""
        exact = np.asarray(probabilities, np.float64)
        own = np.log(exact + 1e-10)
        affinity = nearest(np.sqrt(exact), self.neighbours)
        answers = exact
        energy = np.inf
        for step in range(self.steps):
            scores = own + self.weight * (affinity @ answers)
            answers = np.exp(scores - scores.max(axis=1, keepdims=True))
            answers /= answers.sum(axis=1, keepdims=True)
            previous = energy
            energy = self._energy(own, affinity, answers)
            if step >= 2 and abs(energy - previous) <= 1e-8 * abs(previous):
                break
        return answers

    def _energy(self, own: Array, affinity: Array, answers: Array) -> float:
        smooth = (affinity @ answers) * answers
        entropy = answers * np.log(answers + 1e-10)
        return float((-own * answers - self.weight * smooth + entropy).sum())


def nearest(features: Array, neighbours: int) -> Array:
    """A symmetric 0/1 matrix: 1 where either is among the other's nearest, 0 on the diagonal."""
    likeness = features @ features.T
    np.fill_diagonal(likeness, -np.inf)  # an image is not its own neighbour, even in a tie
    count = min(neighbours, len(features) - 1)
    chosen = np.zeros(likeness.shape)
    if count > 0:
        places = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
        np.put_along_axis(chosen, places, 1.0, axis=1)
    result: Array = np.maximum(chosen, chosen.T)
    return result


lame = Neighbours()

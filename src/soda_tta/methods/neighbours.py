"""LAME-prob: correct the answers by their neighbours, from probabilities alone; no further query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Work, in_order
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Neighbours(Method):
    """Laplacian adjusted maximum-likelihood estimation, with neighbours found among the probabilities themselves.

    The published method looks at the model's features, which a black box does not show: hence the name LAME-prob.
    Expect gains only where labels are correlated within a batch.
    """

    name: str = "lame"
    summary: str = "LAME-prob: answers corrected by their neighbours; no further query."
    needs: str = "probabilities"
    batch: int = 128
    neighbours: int = 5
    weight: float = 1.0  # of the neighbours against the image's own answer
    steps: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours < 1 or self.steps < 1 or self.weight < 0:
            raise MethodError(
                f"{self.name} needs at least one neighbour and one step, and no negative weight."
            )

    def idle(self) -> tuple[str, ...]:
        return ("epochs",)

    def answer(self, given: Work) -> Array:
        rows = [
            self.correct(given.before[place]) for place in in_order(len(given.before), self.batch)
        ]
        return np.concatenate(rows).astype(np.float32)

    def correct(self, probabilities: Array) -> Array:
        """One batch: iterate Y <- softmax(ln p + weight W Y) to its fixed point."""
        own = np.log(np.asarray(probabilities, np.float64) + 1e-10)
        affinity = nearest(np.sqrt(np.asarray(probabilities, np.float64)), self.neighbours)
        answers, energy = np.asarray(probabilities, np.float64), np.inf
        for step in range(self.steps):
            pull = affinity @ answers
            scores = own + self.weight * pull
            answers = np.exp(scores - scores.max(axis=1, keepdims=True))
            answers /= answers.sum(axis=1, keepdims=True)
            previous, energy = energy, self._energy(own, affinity, answers)
            if step >= 2 and abs(energy - previous) <= 1e-8 * abs(previous):
                break
        return answers

    def _energy(self, own: Array, affinity: Array, answers: Array) -> float:
        smooth = (affinity @ answers) * answers
        return float(
            (-own * answers - self.weight * smooth + answers * np.log(answers + 1e-10)).sum()
        )


def nearest(features: Array, neighbours: int) -> Array:
    """A symmetric 0/1 matrix: 1 where either is among the other's nearest; never itself, whatever ties say."""
    likeness = features @ features.T
    np.fill_diagonal(likeness, -np.inf)
    count = min(neighbours, len(features) - 1)
    chosen = np.zeros(likeness.shape)
    if count > 0:
        places = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
        np.put_along_axis(chosen, places, 1.0, axis=1)
    result: Array = np.maximum(chosen, chosen.T)
    return result


lame = Neighbours()

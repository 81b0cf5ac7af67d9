"""How many epochs and queries a training takes under a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from soda_tta.engine.plan import Plan
from soda_tta.engine.rates import epochs_of_competition, rungs_of
from soda_tta.errors import BudgetError


@dataclass(frozen=True)
class TrainingPlan:
    """The sizes of a training.

    Parameters
    ----------
    images : the number of images.
    limit : the most queries, all purposes together; None for no limit.
    epochs : wanted passes over all images; 0 if nothing is learned.
    batch : images per step.
    candidates : queries per image and step.
    """

    images: int
    limit: int | None
    epochs: int
    batch: int
    candidates: int

    @property
    def learning(self) -> float:
        """Queries that the first and the final pass leave for learning."""
        return math.inf if self.limit is None else self.limit - 2 * self.images

    @property
    def epoch_cost(self) -> int:
        """Queries per epoch."""
        return self.images * self.candidates

    @property
    def covers_a_step(self) -> bool:
        """Whether anything can be learned at all."""
        return bool(self.epochs) and self.learning >= self._batch * self.candidates

    @property
    def _batch(self) -> int:
        return min(self.batch, self.images)

    def without_learning(self) -> Plan:
        """One pass over the images, nothing else."""
        queries = {"select": self.images}
        return Plan(self.images, 0, queries, self.limit, shortened=bool(self.epochs))

    def of_one_rate(self) -> Plan:
        """The plan of one training."""
        if not self.covers_a_step:
            return self.without_learning()
        wanted = self.epochs * self.epoch_cost
        spent = wanted if self.limit is None else min(wanted, self._whole_steps())
        epochs = math.ceil(spent / self.epoch_cost)
        queries = {"select": self.images, "evaluate": self.images, "probe": spent}
        return Plan(self.images, epochs, queries, self.limit, shortened=spent < wanted)

    def of_competition(self, rates: int) -> Plan:
        """The plan of several learning rates that compete."""
        if not self.covers_a_step:
            return self.without_learning()
        for epochs in range(self.epochs, 0, -1):
            rungs = rungs_of(epochs)
            tune = self.epoch_cost * epochs_of_competition(rates, rungs)
            probe = self.epoch_cost * (epochs - rungs[-1])
            if tune + probe <= self.learning:
                passes = {"select": self.images, "evaluate": self.images}
                queries = {**passes, "tune": tune, "probe": probe}
                shortened = epochs < self.epochs
                return Plan(
                    self.images, epochs, queries, self.limit, shortened=shortened, rungs=rungs
                )
        assert self.limit is not None
        raise BudgetError(
            f"a budget of {self.limit / self.images:g} queries per image cannot compare {rates} "
            "learning rates; raise it, or give one (lr=0.01)."
        )

    def _whole_steps(self) -> int:
        """The queries that make up whole steps: full epochs, then full batches."""
        epochs, rest = divmod(int(self.learning), self.epoch_cost)
        steps = min(rest // (self._batch * self.candidates), self.images // self._batch)
        return (epochs * self.images + steps * self._batch) * self.candidates

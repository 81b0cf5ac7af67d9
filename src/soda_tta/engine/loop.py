"""The one training loop: images through candidates of the adaptor to the box, losses back to the search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box
from soda_tta.engine.events import Step
from soda_tta.engine.step import (
    Task,
    changes_by_groups,
    loss_and_gradient,
    losses_of_candidates,
    norm_slope,
)
from soda_tta.objectives.equations import Loss
from soda_tta.search import (
    BackpropSearch,
    FollowedEvolution,
    LoopSearch,
    MultiPointSearch,
    PerImageSearch,
)
from soda_tta.storage.journal import Journal, read_checkpoint, write_checkpoint
from soda_tta.types import Array

ORDER, NOISE = 1, 2  # streams of randomness; a search has its own


class Training:
    """One search over one task: advanced epoch by epoch, kept on disk, picked up again bit for bit.

    With a folder, every step is written to a journal as soon as it is paid and every epoch leaves a checkpoint:
    after a kill the journal's steps are told to the search again without asking the box.
    """

    def __init__(
        self, task: Task, adaptor: Adaptor, search: LoopSearch, folder: Path | None = None
    ) -> None:
        self.task, self.adaptor, self.search = task, adaptor, search
        self.folder = folder
        self.epoch = 0  # epochs completed
        self.history: list[Step] = []
        self.best_loss, self.best_theta = np.inf, self.search.theta
        self.journal = Journal(folder / "history.jsonl") if folder else None
        self.recorded: list[Step] = self._restore(folder) if folder else []

    @property
    def length(self) -> float:
        """How far the search goes at present: its learning rate; of evolution, its deviation."""
        return (
            self.search.length
            if isinstance(self.search, FollowedEvolution)
            else self.search.rule.lr
        )

    def advance(self, epochs: int, purpose: str) -> Iterator[Step]:
        """Learn until so many epochs are complete, or until the next step would touch the reserve."""
        box = self.task.asking(purpose)
        while self.epoch < epochs:
            batches = self._batches()
            for number, indices in enumerate(
                batches[self._steps_done() :], start=self._steps_done() + 1
            ):
                if not self.recorded and not self._affordable(len(indices)):
                    return
                yield self._step(number, len(batches), indices, box, purpose)
            self._end_epoch()

    def _steps_done(self) -> int:
        return sum(step.epoch == self.epoch + 1 for step in self.history)

    def _batches(self) -> list[Array]:
        count, batch = len(self.task.images), self.task.batch
        order = np.random.default_rng([self.task.seed, ORDER, self.epoch]).permutation(count)
        return [order[start : start + batch] for start in range(0, count, batch)]

    def _affordable(self, images: int) -> bool:
        left = self.task.left
        return left is None or left - self.task.reserve >= images * self.search.settings.candidates

    def _step(self, number: int, of: int, indices: Array, box: Box, purpose: str) -> Step:
        if self.recorded:
            step = self.recorded.pop(0)
            self._tell(step.losses, indices)
        else:
            length = self.length
            loss, told = self._evaluate_and_tell(indices, box)
            step = Step(
                epoch=self.epoch + 1,
                step=number,
                of=of,
                lr=length,
                purpose=purpose,
                queries=self.search.settings.candidates * len(indices),
                losses=told,
                mutual_information=loss.mutual_information,
                cross_entropy=loss.cross_entropy,
            )
            if self.journal:
                self.journal.append(step)
        self.history.append(step)
        return step

    def _evaluate_and_tell(self, indices: Array, box: Box) -> tuple[Loss, tuple[float, ...]]:
        """The loss at the current point, and what the search was told: enough to tell it again."""
        noise, points = self._noise(), self.search.ask()
        if isinstance(self.search, BackpropSearch):
            loss, gradient = loss_and_gradient(
                self.task, box, self.adaptor, points[0], indices, noise
            )
            self.search.tell(gradient)
            return loss, (loss.value,)
        if isinstance(self.search, PerImageSearch):
            loss, changes = changes_by_groups(self.task, box, self.adaptor, points, indices, noise)
            told = (loss.value, *changes)
        else:
            walks = isinstance(self.search, MultiPointSearch)
            losses = losses_of_candidates(
                self.task, box, self.adaptor, points, indices, noise, one_norm=walks
            )
            loss, told = losses[0], tuple(each.value for each in losses)
        self._tell(told, indices)
        return loss, told

    def _tell(self, told: tuple[float, ...], indices: Array) -> None:
        if self.task.objective.beta and isinstance(self.search, MultiPointSearch | PerImageSearch):
            known = norm_slope(self.task, self.adaptor, self.search.theta, indices, self._noise())
            self.search.tell(told, known)
        else:
            self.search.tell(told)

    def _noise(self) -> int:
        """The seed of this step's dropout."""
        return int(
            np.random.default_rng([self.task.seed, NOISE, self.search.count]).integers(2**31)
        )

    def _end_epoch(self) -> None:
        self.epoch += 1
        if (loss := self.epoch_loss(self.epoch)) < self.best_loss:
            self.best_loss, self.best_theta = loss, self.search.theta
        if self.folder and not self.recorded:
            arrays = {"best": self.best_theta, **self.search.state()}
            facts = {"epoch": self.epoch, "best_loss": self.best_loss, "steps": len(self.history)}
            write_checkpoint(self.folder / "checkpoint.safetensors", arrays, facts)

    def epoch_loss(self, epoch: int) -> float:
        """The mean loss over an epoch: what rivals and epochs are compared by, without labels."""
        return float(np.mean([step.loss for step in self.history if step.epoch == epoch]))

    def _restore(self, folder: Path) -> list[Step]:
        """Go back to the last checkpoint; returns the steps paid since, to be told again.

        A gradient is not in the journal, so the steps of a first-order search since its checkpoint are made again;
        its box is our own.
        """
        assert self.journal is not None
        steps, checkpoint = self.journal.read(), read_checkpoint(folder / "checkpoint.safetensors")
        done = int(checkpoint[1]["steps"]) if checkpoint else 0
        if isinstance(self.search, BackpropSearch):
            steps = steps[:done]
            self.journal.rewrite(steps)
        for step in steps:
            self.task.ledger.recover(step.queries, step.purpose)
        if checkpoint:
            arrays, facts = checkpoint
            self.search.restore(arrays)
            self.epoch, self.best_loss, self.best_theta = (
                int(facts["epoch"]),
                float(facts["best_loss"]),
                arrays["best"],
            )
            self.history = steps[:done]
        return steps[done:]

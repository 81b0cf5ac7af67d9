"""The training loop: images through candidates of the adaptor to the box, losses to the search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box
from soda_tta.engine.events import Step
from soda_tta.engine.step import (
    Batch,
    Task,
    changes_by_group,
    loss_and_gradient,
    losses_of_candidates,
    norm_slope,
)
from soda_tta.errors import RunError
from soda_tta.foreign_text import quoted
from soda_tta.objectives import Loss
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import Search
from soda_tta.storage.checkpoint import read_arrays, write_arrays
from soda_tta.storage.journal import Journal
from soda_tta.storage.run_folder import TrainingFiles
from soda_tta.types import Array, Purpose

CHECKPOINT = "soda_tta.checkpoint"  # the metadata entry that holds its facts
NOT_KEPT = TrainingFiles(Journal(None), None)


class Training:
    """One search over one task: advanced epoch by epoch, kept on disk, resumed bit for bit.

    Every step is written to a journal as soon as it is billed and every epoch leaves a checkpoint.
    After a crash the steps of the journal are told to the search again, without a query.

    Parameters
    ----------
    task : images, model, objective.
    adaptor : what is trained.
    search : how its parameters move.
    candidates : queries per image and step.
    files : where steps and checkpoints are kept; by default nowhere.
    """

    def __init__(
        self,
        task: Task,
        adaptor: Adaptor,
        search: Search,
        candidates: int,
        files: TrainingFiles = NOT_KEPT,
    ) -> None:
        self.task = task
        self.adaptor = adaptor
        self.search = search
        self.candidates = candidates
        self.files = files
        self.epoch = 0  # epochs completed
        self.history: list[Step] = []
        self.best_loss = np.inf
        self.best_theta = search.theta
        self.recorded = self._restore()  # billed steps that the search does not know yet

    def advance(self, epochs: int, purpose: Purpose) -> Iterator[Step]:
        """Learn until `epochs` are complete, or until the next step would touch the reserve."""
        box = self.task.meter.asking(purpose)
        while self.epoch < epochs:
            batches = self._batches()
            done = sum(step.epoch == self.epoch + 1 for step in self.history)
            for number, indices in enumerate(batches[done:], start=done + 1):
                if not self.recorded and not self._affordable(len(indices)):
                    return
                yield self._step(number, len(batches), indices, box, purpose)
            self._end_epoch()

    def epoch_loss(self, epoch: int) -> float:
        """The mean loss over an epoch: it compares epochs and learning rates without labels."""
        return float(np.mean([step.loss for step in self.history if step.epoch == epoch]))

    def _batches(self) -> list[Array]:
        count = len(self.task.images)
        order = generator(self.task.seed, RandomStream.ORDER, self.epoch).permutation(count)
        return [
            order[start : start + self.task.batch] for start in range(0, count, self.task.batch)
        ]

    def _affordable(self, images: int) -> bool:
        left = self.task.meter.left
        return left is None or left - self.task.reserve >= images * self.candidates

    def _step(self, number: int, of: int, indices: Array, box: Box, purpose: Purpose) -> Step:
        batch = Batch(self.task, box, self.adaptor, indices, self._noise())
        if self.recorded:
            step = self.recorded.pop(0)
            self.search.tell(step.losses, self._known_slope(batch))
        else:
            length = self.search.length
            loss, values = self._evaluate_and_tell(batch)
            step = Step(
                epoch=self.epoch + 1,
                step=number,
                of=of,
                lr=length,
                purpose=purpose,
                queries=self.candidates * len(indices),
                losses=values,
                mutual_information=loss.mutual_information,
                cross_entropy=loss.cross_entropy,
            )
            if self.files.journal.path is not None:
                self.files.journal.append(step.facts())
                self.task.meter.forget()  # the responses of a step in the journal are not needed
        self.history.append(step)
        return step

    def _evaluate_and_tell(self, batch: Batch) -> tuple[Loss, tuple[float, ...]]:
        """The loss at the current point, and the values that the journal keeps."""
        search = self.search
        points = search.ask()
        if search.wants == "gradient":
            loss, gradient = loss_and_gradient(batch, points[0])
            search.tell(gradient)
            return loss, (loss.value,)
        if search.wants == "group changes":
            loss, changes = changes_by_group(batch, points)
            values = (loss.value, *changes)
        else:
            # Where the slope of the norm is known, the candidates' losses must not differ by it.
            losses = losses_of_candidates(batch, points, shared_norm=search.adds_known_slope)
            loss = losses[0]
            values = tuple(each.value for each in losses)
        search.tell(values, self._known_slope(batch))
        return loss, values

    def _known_slope(self, batch: Batch) -> Array | float:
        """The part of the gradient that need not be estimated: that of the perturbation's norm."""
        if self.task.objective.beta and self.search.adds_known_slope:
            return norm_slope(batch, self.search.theta)
        return 0.0

    def _noise(self) -> int:
        """The seed of this step's dropout."""
        random = generator(self.task.seed, RandomStream.NOISE, self.search.count)
        return int(random.integers(2**31))

    def _end_epoch(self) -> None:
        self.epoch += 1
        loss = self.epoch_loss(self.epoch)
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_theta = self.search.theta
        if self.files.checkpoint is not None and not self.recorded:
            arrays = {"best": self.best_theta, **self.search.state()}
            facts = {"epoch": self.epoch, "best_loss": self.best_loss, "steps": len(self.history)}
            write_arrays(self.files.checkpoint, arrays, facts, CHECKPOINT)

    def _restore(self) -> list[Step]:
        """Return to the last checkpoint; the steps billed since are told to the search again.

        The journal does not hold gradients, so a first-order search repeats the steps since its
        checkpoint; its box is local and costs nothing.
        """
        steps = self._journal_steps()
        path = self.files.checkpoint
        done = 0
        if path is not None and path.exists():
            problem = f"{path} is not a checkpoint of this version; start a new run"
            arrays, facts = read_arrays(path, CHECKPOINT, problem)
            try:
                done = int(facts["steps"])
                self.search.restore(arrays)
                self.epoch = int(facts["epoch"])
                self.best_loss = float(facts["best_loss"])
                self.best_theta = arrays["best"]
            except (KeyError, TypeError, ValueError) as error:
                raise RunError(f"{problem} ({type(error).__name__}: {quoted(error)}).") from error
        if self.search.wants == "gradient":
            steps = steps[:done]
            self.files.journal.rewrite([step.facts() for step in steps])
        for step in steps:
            self.task.meter.recover(step.queries, step.purpose)  # type: ignore[arg-type]
        self.history = steps[:done]
        return steps[done:]

    def _journal_steps(self) -> list[Step]:
        try:
            return [Step.from_facts(facts) for facts in self.files.journal.read()]
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{self.files.journal.path} is not a history of this version ({error}); "
                "start a new run."
            ) from error

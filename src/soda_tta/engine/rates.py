"""Learning rates that compete: the better ones by their loss go on, without labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from soda_tta.engine.events import Epoch, Step
from soda_tta.engine.loop import Training
from soda_tta.engine.work import Work

# Rates are compared after these shares of the epochs, and so many of them go on. A large rate is
# ahead at first and overtaken later; waiting for half of the epochs is a compromise
# (benchmarks/rate_choice.py).
RUNGS = ((0.05, 3), (0.20, 2), (0.50, 1))


def rungs_of(epochs: int) -> tuple[int, ...]:
    """The epochs after which rates are compared."""
    return tuple(max(1, math.ceil(share * epochs)) for share, _ in RUNGS)


def epochs_of_competition(rates: int, rungs: Sequence[int]) -> int:
    """The epochs that all competing rates take together, until one is left.

    >>> epochs_of_competition(5, (5, 20, 50))    # 5 x 5 + 3 x 15 + 2 x 30
    130
    """
    total = 0
    reached = 0
    for rung, (_, kept) in zip(rungs, RUNGS, strict=True):
        total += rates * (rung - reached)
        rates = min(rates, kept)
        reached = rung
    return total


class TrainingStopped(Exception):
    """The user asked to stop while this training was the best so far."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self.training = training


def train(trainings: list[Training], work: Work) -> Training:
    """Train; of several rates, return the one that wins.

    The competitors share every batch and every direction: they differ in nothing but the rate.
    Raises TrainingStopped, with the best training so far, if the user asks to stop.
    """
    for rung, (_, kept) in zip(work.plan.rungs, RUNGS, strict=False):  # no rungs for one rate
        for training in trainings:
            for step in training.advance(rung, "tune"):
                report(step, training, work)
                if work.stop():
                    raise TrainingStopped(min(trainings, key=lambda each: each.best_loss))
        # by the loss at the rung: a resumed training may be further on
        trainings = sorted(trainings, key=lambda each: each.epoch_loss(rung))[:kept]
    (training,) = trainings
    for step in training.advance(work.plan.epochs, "probe"):
        report(step, training, work)
        if work.stop():
            raise TrainingStopped(training)
    return training


def report(step: Step, training: Training, work: Work) -> None:
    """Pass a step to the listener and, at the end of an epoch, the epoch."""
    work.tell(step)
    if step.step == step.of:
        training.adaptor.parameters = training.search.theta.astype(np.float32)
        # The first rate identifies the training: evolution reports its deviation, which changes.
        rate = training.history[0].lr
        loss = training.epoch_loss(step.epoch)
        queries = work.meter.ledger.answered
        work.tell(Epoch(step.epoch, rate, loss, queries, training.adaptor))

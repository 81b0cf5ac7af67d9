"""DINE: distil the box's answers into a local target network, then fine-tune it. One query an image, once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.methods.distillation.distillation import (
    Distillation,
    dine_finetune_rate,
    distil_rate,
    finetune,
    refresh,
    smooth,
    tell_epoch,
    tenth,
)
from soda_tta.methods.method import Outcome, Work


@dataclass(frozen=True, kw_only=True)
class Dine(Distillation):
    """KL to smoothed answers that drift to the student's own, MixUp, mutual information; then the last alone.

    `finetune_epochs=0` gives the student after the first stage.
    """

    name: str = "dine"
    summary: str = "A local network distilled from the answers (DINE); from random weights unless one is given."

    def learn(self, given: Work, chance: np.random.Generator) -> Outcome:
        import torch

        from soda_tta.methods.distillation import student as net

        (student,) = net.build_students(self, given.images, given.before.shape[1], 1)
        optimiser = net.optimiser_of(self, student)
        memory = smooth(given.before, self.topk)
        steps = self.epochs * net.batch_count(len(given.images), self.batch)
        step = 0
        for epoch in range(1, self.epochs + 1):
            losses = []
            for indices, images in net.weak_batches(given.images, self.batch, chance):
                if step and step % tenth(steps) == 0:
                    memory = refresh(
                        memory, net.answers_of(net.scores_of([student], given.images)), self.ema
                    )
                step += 1
                net.set_rates(optimiser, distil_rate(step / steps))
                student.train()
                targets = torch.from_numpy(memory[indices])
                losses.append(net.distil_step(self, student, optimiser, images, targets, chance))
            tell_epoch(given, epoch, optimiser.param_groups[1]["lr"], losses)
        finetune(self, student, given, chance, dine_finetune_rate)
        return Outcome(net.answers_of(net.scores_of([student], given.images)))


dine = Dine()

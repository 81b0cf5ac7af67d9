"""DINE: distil the responses into a local network, then fine-tune it. One query per image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.engine.work import Work
from soda_tta.methods.distillation.distillation import Distillation
from soda_tta.methods.method import Outcome


@dataclass(frozen=True, kw_only=True)
class Dine(Distillation):
    """KL to smoothed answers that drift to the student's own, MixUp and mutual information.

    Fine-tuning follows, on mutual information alone; `finetune_epochs=0` leaves it out.
    """

    name: str = "dine"
    summary: str = "A local network distilled from the answers (DINE)."

    def learn(self, work: Work, random: np.random.Generator) -> Outcome:
        """Train and answer."""
        import torch

        from soda_tta.methods.distillation import stages
        from soda_tta.methods.distillation import student as net

        (student,) = net.build_students(self, work.images, work.before.shape[1], 1)
        optimiser = net.optimiser_of(self, student)
        memory = stages.smooth(work.before, self.topk)
        steps = self.epochs * net.batch_count(len(work.images), self.batch)
        step = 0
        for epoch in range(1, self.epochs + 1):
            losses = []
            for indices, images in net.weak_batches(work.images, self.batch, random):
                if step and step % stages.tenth(steps) == 0:
                    memory = stages.refresh(
                        memory, net.answers_of(net.scores_of([student], work.images)), self.ema
                    )
                step += 1
                net.set_rates(optimiser, stages.distil_rate(step / steps))
                student.train()
                targets = torch.from_numpy(memory[indices])
                losses.append(net.distil_step(self, student, optimiser, images, targets, random))
            stages.record_epoch(work, epoch, optimiser.param_groups[1]["lr"], losses)
        stages.finetune(self, student, work, random, stages.dine_finetune_rate)
        return Outcome(net.answers_of(net.scores_of([student], work.images)))


dine = Dine()

"""BETA: two local networks teach each other from one pass (from its description, not its code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from soda_tta.engine.work import Work
from soda_tta.methods.distillation.beta_settings import BetaSettings
from soda_tta.methods.method import Outcome
from soda_tta.types import Array

if TYPE_CHECKING:
    from soda_tta.methods.distillation.mutual import Pair


@dataclass(frozen=True, kw_only=True)
class Beta(BetaSettings):
    """Every epoch: DINE's step, a split of the images by their loss, then MixMatch on the split.

    Each network makes its own split, and its peer says how far labels are trusted. `adversarial` is
    off as in the published settings; 0.1 is the paper's value, built as it was meant.
    `finetune_epochs=0` answers with both students' mean logits.
    """

    name: str = "beta"
    summary: str = "Two local networks distilled from the answers, which teach each other (BETA)."

    def learn(self, work: Work, random: np.random.Generator) -> Outcome:
        """Train and answer."""
        from soda_tta.methods.distillation import stages
        from soda_tta.methods.distillation import student as net
        from soda_tta.methods.distillation.mutual import Pair

        pair = Pair(self, work, random)
        memory = stages.smooth(work.before, self.topk)
        for epoch in range(1, self.epochs + 1):
            pair.rate = stages.distil_rate(epoch / self.epochs)
            # never from untrained networks: the published code may refresh before the first step
            if epoch % stages.tenth(self.epochs) == 0 and epoch > max(1, self.warmup):
                memory = stages.refresh(
                    memory, net.answers_of(net.scores_of(pair.students, work.images)), self.ema
                )
            losses = self._epoch(pair, memory, epoch)
            stages.record_epoch(work, epoch, pair.rate * self.head_lr, losses)
        students = pair.students
        if self.finetune_epochs:
            stages.finetune(self, students[0], work, random, stages.beta_finetune_rate)
            students = students[:1]
        return Outcome(
            net.answers_of(net.scores_of(students, work.images)), notices=self._idle_passes(pair)
        )

    def _idle_passes(self, pair: Pair) -> tuple[str, ...]:
        """With few images, the split rarely gives two full batches: then two DINEs are left."""
        passes = 2 * max(0, self.epochs - self.warmup)
        if 2 * pair.left_out < passes or not passes:
            return ()
        return (
            f"MixMatch was left out in {pair.left_out} of {passes} passes: the easy or the hard "
            f"images were fewer than a batch of {self.batch}. Use more images or a smaller batch.",
        )

    def _epoch(self, pair: Pair, memory: Array, epoch: int) -> list[tuple[float, float, float]]:
        if epoch <= self.warmup:
            return [line for member in (0, 1) for line in pair.warm_up(member)]
        losses = [line for member in (0, 1) for line in pair.distil(member, memory)]
        trust = [pair.divide(member) for member in (0, 1)]  # both, before either goes on
        for member in (0, 1):
            pair.mix_match(member, own=trust[member], peer=trust[1 - member], epoch=epoch)
        return losses


beta = Beta()

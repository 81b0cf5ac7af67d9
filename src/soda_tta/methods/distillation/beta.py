"""BETA: two target networks teach each other from one look at the box (written from its description, not its code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.methods.distillation.distillation import (
    Distillation,
    beta_finetune_rate,
    distil_rate,
    finetune,
    refresh,
    smooth,
    tell_epoch,
    tenth,
)
from soda_tta.methods.method import Outcome, Work
from soda_tta.types import Array

if TYPE_CHECKING:
    from soda_tta.methods.distillation.mutual import Pair


@dataclass(frozen=True, kw_only=True)
class Beta(Distillation):
    """Every epoch: DINE's step, then split the images into easy and hard by the loss, then MixMatch on the split.

    The split is a network's own, the trust in the labels its peer's. Without `adversarial` as in the published
    settings; 0.1 is the paper's value, built as it was meant. `finetune_epochs=0` gives both students' mean logits.
    """

    name: str = "beta"
    summary: str = "Two local networks distilled from the answers (BETA); from random weights unless one is given."
    threshold: float = 0.8  # trust from which a label is easy
    temperature: float = 0.5  # of the sharpening
    alpha: float = 1.0  # MixMatch's Beta distribution
    lam_p: float = 1.0  # weight of the uniform prior
    lam_u: float = 0.0  # weight of the squared error on hard images
    rampup: int = 16  # epochs until lam_u is whole
    adversarial: float = 0.0
    warmup: int = 0  # epochs of plain cross-entropy first

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.threshold <= 1 or self.temperature <= 0 or self.alpha <= 0:
            raise MethodError(
                "beta needs a threshold in (0, 1], a temperature and an alpha above 0."
            )
        if min(self.lam_p, self.lam_u, self.rampup, self.adversarial, self.warmup) < 0:
            raise MethodError("beta takes no negative weight and no negative number of epochs.")

    def learn(self, given: Work, chance: np.random.Generator) -> Outcome:
        from soda_tta.methods.distillation import student as net
        from soda_tta.methods.distillation.mutual import Pair

        pair = Pair(self, given, chance)
        memory = smooth(given.before, self.topk)
        for epoch in range(1, self.epochs + 1):
            pair.rate = distil_rate(epoch / self.epochs)
            # never from untrained networks: the published code may refresh before the first step
            if epoch % tenth(self.epochs) == 0 and epoch > max(1, self.warmup):
                memory = refresh(
                    memory, net.answers_of(net.scores_of(pair.students, given.images)), self.ema
                )
            losses = self._epoch(pair, memory, epoch)
            tell_epoch(given, epoch, pair.rate * self.head_lr, losses)
        students = pair.students
        if self.finetune_epochs:
            finetune(self, students[0], given, chance, beta_finetune_rate)
            students = students[:1]
        return Outcome(
            net.answers_of(net.scores_of(students, given.images)), notices=self._idle_passes(pair)
        )

    def _idle_passes(self, pair: Pair) -> tuple[str, ...]:
        """With few images the split seldom has a full batch on both sides, and what is left of BETA is two of DINE."""
        passes = 2 * max(0, self.epochs - self.warmup)
        if 2 * pair.left_out < passes or not passes:
            return ()
        return (
            f"MixMatch was left out in {pair.left_out} of {passes} passes: the easy or the hard images made no full "
            f"batch of {self.batch}. Give more images, or a smaller batch.",
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

"""The two students of BETA and how they teach each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from soda_tta.engine.work import Work
from soda_tta.methods.distillation import student as net
from soda_tta.methods.distillation.beta_settings import BetaSettings
from soda_tta.methods.distillation.division import easy_posterior
from soda_tta.methods.distillation.views import strong, weak
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

Line = tuple[float, float, float]  # loss, L_IM, cross-entropy


class Pair:
    """Two students that start from one backbone, their optimisers, and the box's labels.

    The labels stay fixed for the run.

    Parameters
    ----------
    how : BetaSettings
        The method's settings.
    work : Work
        Images and the box's initial probabilities.
    random : numpy Generator
        Everything random is drawn from it.
    """

    def __init__(self, how: BetaSettings, work: Work, random: np.random.Generator) -> None:
        self.how = how
        self.images = work.images
        self.random = random
        self.rate = 1.0  # factor of the learning rates
        self.labels = torch.from_numpy(work.before.argmax(axis=1))
        self.classes = work.before.shape[1]
        self.students = net.build_students(how, work.images, self.classes, 2)
        self.optimisers = [net.optimiser_of(how, student) for student in self.students]
        self.left_out = 0  # passes of MixMatch without a step
        self.rivals = [Rival(student.size) for student in self.students] if how.adversarial else []
        for optimiser, rival in zip(self.optimisers, self.rivals, strict=False):
            optimiser.add_param_group(
                {"params": list(rival.parameters()), "lr": how.head_lr, "lr0": how.head_lr}
            )

    def warm_up(self, member: int) -> list[Line]:
        """One pass of plain cross-entropy with the box's labels."""
        student, optimiser = self._ready(member)
        lines = []
        for indices, images in net.weak_batches(self.images, self.how.batch, self.random):
            logits = student(images)
            loss = functional.cross_entropy(logits, self.labels[indices])
            self._step(optimiser, loss)
            value = float(loss.detach())
            information = float(net.information_loss(logits.detach()))
            lines.append((value, information, value))
        return lines

    def distil(self, member: int, memory: Array) -> list[Line]:
        """One pass of DINE's step."""
        student, optimiser = self._ready(member)
        return [
            net.distil_step(
                self.how, student, optimiser, images, torch.from_numpy(memory[indices]), self.random
            )
            for indices, images in net.weak_batches(self.images, self.how.batch, self.random)
        ]

    def divide(self, member: int) -> Array:
        """How likely the box's label of each image is right, judged by this student's loss."""
        scores = net.scores_of([self.students[member]], self.images)
        losses = functional.cross_entropy(scores, self.labels, reduction="none")
        return easy_posterior(losses.double().numpy())

    def mix_match(self, member: int, own: Array, peer: Array, epoch: int) -> None:
        """One pass over the easy images, each batch with as many hard ones.

        The pass is skipped if either set has no full batch.

        Parameters
        ----------
        member : int
            Which student learns, 0 or 1.
        own, peer : arrays of shape (n,)
            How likely each label is right, according to this student and to the other one.
        epoch : int
            From 1 on.
        """
        batch = self.how.batch
        easy = np.flatnonzero(own >= self.how.threshold)
        hard = np.flatnonzero(own < self.how.threshold)
        steps = len(easy) // batch
        if not steps or len(hard) < batch:
            self.left_out += 1
            return
        student, optimiser = self._ready(member)
        self.students[1 - member].eval()
        easy_batches = self._batches(easy, steps)
        hard_batches = self._batches(hard, steps)
        for number, (easy_now, hard_now) in enumerate(zip(easy_batches, hard_batches, strict=True)):
            images = [torch.from_numpy(self.images[indices]) for indices in (easy_now, hard_now)]
            views = [view(each, self.random) for each in images for view in VIEWS]
            trust = torch.from_numpy(peer[easy_now].astype(np.float32))
            targets = self.targets(member, views, self.labels[easy_now], trust)
            ramp = ramp_up(epoch - 1 + number / steps - self.how.warmup, self.how.rampup)
            loss = self.match_loss(student, torch.cat(views), targets, ramp)
            if self.rivals:
                rivalry = self.rivals[member](student, views[0], views[2])
                loss = loss + self.how.adversarial * rivalry
            self._step(optimiser, loss)

    def targets(self, member: int, views: list[Tensor], labels: Tensor, trust: Tensor) -> Tensor:
        """Sharpened targets for all views.

        Easy images: the label, weighted by the peer's trust in it, and the student's own response.
        Hard images: the mean response of both networks.
        """
        student, other = self.students[member], self.students[1 - member]
        # in training mode, as published: these views enter the running statistics
        with torch.no_grad():
            easy = mean_answer([student], views[:2])
            hard = mean_answer([student, other], views[2:])
        certain = functional.one_hot(labels, self.classes).float()
        easy = trust[:, None] * certain + (1 - trust[:, None]) * easy
        easy = sharpen(easy, self.how.temperature)
        hard = sharpen(hard, self.how.temperature)
        return torch.cat([easy, easy, hard, hard])

    def match_loss(
        self, student: net.Student, stack: Tensor, targets: Tensor, ramp: float
    ) -> Tensor:
        """Cross-entropy on mixed easy rows, a uniform prior and, with lam_u, an error on hard rows.

        Partners come from all rows. Without lam_u only easy rows pass through the student, so hard
        images serve as partners alone.
        """
        share = float(self.random.beta(self.how.alpha, self.how.alpha))
        partners = torch.from_numpy(self.random.permutation(len(stack)))
        mixed, mixed_targets = net.mix_up(stack, targets, max(share, 1 - share), partners)
        easy = len(stack) // 2
        logits = student(mixed if self.how.lam_u else mixed[:easy])
        loss = functional.cross_entropy(logits[:easy], mixed_targets[:easy])
        loss = loss + self.how.lam_p * prior_penalty(logits)
        if self.how.lam_u:
            error = functional.mse_loss(logits[easy:].softmax(dim=1), mixed_targets[easy:])
            loss = loss + self.how.lam_u * ramp * error
        return loss

    def _batches(self, indices: Array, steps: int) -> list[Array]:
        """`steps` full batches in random order; all images again when they run out."""
        batch = self.how.batch
        batches: list[Array] = []
        while len(batches) < steps:
            order = self.random.permutation(indices)
            starts = range(0, len(order) - batch + 1, batch)
            batches += [order[start : start + batch] for start in starts]
        return batches[:steps]

    def _ready(self, member: int) -> tuple[net.Student, torch.optim.SGD]:
        """A student in training mode and its optimiser at the current rate."""
        net.set_rates(self.optimisers[member], self.rate)
        self.students[member].train()
        return self.students[member], self.optimisers[member]

    def _step(self, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


VIEWS = (weak, strong)


def mean_answer(students: list[net.Student], views: list[Tensor]) -> Tensor:
    """The mean of the students' probabilities over the views."""
    rows = [student(view).softmax(dim=1) for student in students for view in views]
    return torch.stack(rows).mean(dim=0)


def sharpen(rows: Tensor, temperature: float) -> Tensor:
    """MixMatch's sharpening: a temperature below 1 makes probabilities more confident."""
    sharp: Tensor = tempered(rows, 1 / temperature)
    return sharp


def prior_penalty(logits: Tensor) -> Tensor:
    """KL(uniform || mean probabilities): no class may vanish."""
    mean = logits.softmax(dim=1).mean(dim=0)
    return -torch.log(mean * len(mean) + 1e-8).mean()


def ramp_up(epochs: float, rampup: int) -> float:
    """A weight that rises from 0 to 1 within `rampup` epochs.

    >>> ramp_up(4, rampup=16), ramp_up(20, rampup=16), ramp_up(0, rampup=0)
    (0.25, 1.0, 1.0)
    """
    if not rampup:
        return 1.0
    return float(np.clip(epochs / rampup, 0, 1))


class Rival(nn.Module):
    """Distinguishes easy from hard images by their features; reverses its gradient for the student.

    The published one compares a batch with itself, is never trained and is reset every epoch, so it
    has no effect. This is what it was meant to be. Its influence grows with its steps: it reaches
    half after about 1,100.
    """

    def __init__(self, size: int, width: int = 256) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(size, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 1)
        )
        self.steps = 0

    def forward(self, student: net.Student, easy: Tensor, hard: Tensor) -> Tensor:
        strength = 2 / (1 + float(np.exp(-self.steps / 1000))) - 1
        self.steps += 1
        features = Reversed.apply(student.features(torch.cat([easy, hard])), strength)  # type: ignore[no-untyped-call]
        scores = self.layers(features)[:, 0]
        is_easy = torch.cat([torch.ones(len(easy)), torch.zeros(len(hard))])
        # the halves are equal, so this is the mean of both parts
        return functional.binary_cross_entropy_with_logits(scores, is_easy)


class Reversed(torch.autograd.Function):
    """Passes values on and gradients back with reversed sign."""

    @staticmethod
    def forward(context: Any, values: Tensor, strength: float) -> Tensor:
        context.strength = strength
        return values.view_as(values)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> tuple[Tensor, None]:
        return -context.strength * slope, None

"""The two students of BETA and what they do to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from soda_tta.engine.work import Work
from soda_tta.methods.distillation import student as net
from soda_tta.methods.distillation.division import easy_posterior
from soda_tta.methods.distillation.views import strong, weak
from soda_tta.types import Array

if TYPE_CHECKING:
    from soda_tta.methods.distillation.beta import Beta

Line = tuple[float, float, float]  # loss, L_IM, cross-entropy


class Pair:
    """Two students with one backbone to begin with, their optimisers, and the box's labels, frozen for the run."""

    def __init__(self, how: Beta, given: Work, chance: np.random.Generator) -> None:
        self.how, self.images, self.chance, self.rate = how, given.images, chance, 1.0
        self.labels = torch.from_numpy(given.before.argmax(axis=1))
        self.classes = given.before.shape[1]
        self.students = net.build_students(how, given.images, self.classes, 2)
        self.optimisers = [net.optimiser_of(how, student) for student in self.students]
        self.left_out = 0  # passes of MixMatch without a step
        self.rivals = [Rival(student.size) for student in self.students] if how.adversarial else []
        for optimiser, rival in zip(self.optimisers, self.rivals, strict=False):
            optimiser.add_param_group(
                {"params": list(rival.parameters()), "lr": how.head_lr, "lr0": how.head_lr}
            )

    def warm_up(self, member: int) -> list[Line]:
        """A pass of plain cross-entropy to the box's labels."""
        student, optimiser = self._ready(member)
        lines = []
        for indices, images in net.weak_batches(self.images, self.how.batch, self.chance):
            logits = student(images)
            loss = functional.cross_entropy(logits, self.labels[indices])
            self._step(optimiser, loss)
            value, information = float(loss.detach()), float(net.information_loss(logits.detach()))
            lines.append((value, information, value))
        return lines

    def distil(self, member: int, memory: Array) -> list[Line]:
        """A pass of DINE's step."""
        student, optimiser = self._ready(member)
        return [
            net.distil_step(
                self.how, student, optimiser, images, torch.from_numpy(memory[indices]), self.chance
            )
            for indices, images in net.weak_batches(self.images, self.how.batch, self.chance)
        ]

    def divide(self, member: int) -> Array:
        """For each image, how likely the box's label is right, by this student's loss on it."""
        scores = net.scores_of([self.students[member]], self.images)
        return easy_posterior(
            functional.cross_entropy(scores, self.labels, reduction="none").double().numpy()
        )

    def mix_match(self, member: int, own: Array, peer: Array, epoch: int) -> None:
        """A pass over the easy images, each batch with as many hard ones; left out if either set has no full batch."""
        batch = self.how.batch
        easy, hard = (
            np.flatnonzero(own >= self.how.threshold),
            np.flatnonzero(own < self.how.threshold),
        )
        steps = len(easy) // batch
        if not steps or len(hard) < batch:
            self.left_out += 1
            return
        student, optimiser = self._ready(member)
        self.students[1 - member].eval()
        easy_batches, hard_batches = self._batches(easy, steps), self._batches(hard, steps)
        for number, (sure, unsure) in enumerate(zip(easy_batches, hard_batches, strict=True)):
            parts = [torch.from_numpy(self.images[part]) for part in (sure, unsure)]
            views = [view(part, self.chance) for part in parts for view in VIEWS]
            trust = torch.from_numpy(peer[sure].astype(np.float32))
            targets = self.targets(member, views, self.labels[sure], trust)
            ramp = ramp_up(epoch - 1 + number / steps - self.how.warmup, self.how.rampup)
            loss = self.match_loss(student, torch.cat(views), targets, ramp)
            if self.rivals:
                loss = loss + self.how.adversarial * self.rivals[member](
                    student, views[0], views[2]
                )
            self._step(optimiser, loss)

    def targets(self, member: int, views: list[Tensor], labels: Tensor, trust: Tensor) -> Tensor:
        """Easy: the label as far as the peer trusts it, else the own answer. Hard: both networks' answers."""
        student, other = self.students[member], self.students[1 - member]
        with (
            torch.no_grad()
        ):  # in training mode, as published: these views enter the running statistics
            easy = mean_answer([student], views[:2])
            hard = mean_answer([student, other], views[2:])
        certain = functional.one_hot(labels, self.classes).float()
        easy = trust[:, None] * certain + (1 - trust[:, None]) * easy
        easy, hard = sharpen(easy, self.how.temperature), sharpen(hard, self.how.temperature)
        return torch.cat([easy, easy, hard, hard])

    def match_loss(
        self, student: net.Student, stack: Tensor, targets: Tensor, ramp: float
    ) -> Tensor:
        """Cross-entropy on the mixed easy rows, a uniform prior and, with lam_u, the squared error on the hard rows.

        Partners come from all rows; without lam_u only the easy ones are asked, so hard images act as partners alone.
        """
        share = float(self.chance.beta(self.how.alpha, self.how.alpha))
        partners = torch.from_numpy(self.chance.permutation(len(stack)))
        mixed, wanted = net.mix_up(stack, targets, max(share, 1 - share), partners)
        sure = len(stack) // 2
        logits = student(mixed if self.how.lam_u else mixed[:sure])
        loss = functional.cross_entropy(logits[:sure], wanted[:sure])
        loss = loss + self.how.lam_p * prior_penalty(logits)
        if self.how.lam_u:
            error = functional.mse_loss(logits[sure:].softmax(dim=1), wanted[sure:])
            loss = loss + self.how.lam_u * ramp * error
        return loss

    def _batches(self, indices: Array, steps: int) -> list[Array]:
        """So many full batches in random order, beginning again when the images run out."""
        batch, found = self.how.batch, list[Array]()
        while len(found) < steps:
            order = self.chance.permutation(indices)
            found += [
                order[start : start + batch] for start in range(0, len(order) - batch + 1, batch)
            ]
        return found[:steps]

    def _ready(self, member: int) -> tuple[net.Student, torch.optim.SGD]:
        net.set_rates(self.optimisers[member], self.rate)
        self.students[member].train()
        return self.students[member], self.optimisers[member]

    def _step(self, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


VIEWS = (weak, strong)


def mean_answer(students: list[net.Student], views: list[Tensor]) -> Tensor:
    return torch.stack(
        [student(view).softmax(dim=1) for student in students for view in views]
    ).mean(dim=0)


def sharpen(rows: Tensor, temperature: float) -> Tensor:
    powered = rows ** (1 / temperature)
    return powered / powered.sum(dim=1, keepdim=True)


def prior_penalty(logits: Tensor) -> Tensor:
    """KL(uniform || mean answer): no class may vanish."""
    mean = logits.softmax(dim=1).mean(dim=0)
    return -torch.log(mean * len(mean) + 1e-8).mean()


def ramp_up(epochs: float, rampup: int) -> float:
    return float(np.clip(epochs / rampup, 0, 1)) if rampup else 1.0


class Rival(nn.Module):
    """Tells easy from hard images by their features, and turns its gradient round for whoever made the features.

    The published one compares a batch with itself, is never trained and forgets itself every epoch, hence does
    nothing; this is what it was meant to be. Its influence grows with its steps: to half after about 1,100.
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
        return functional.binary_cross_entropy_with_logits(
            scores, is_easy
        )  # equal halves: the mean of both parts


class Reversed(torch.autograd.Function):
    """Passes values on, and gradients back with the sign turned."""

    @staticmethod
    def forward(context: Any, values: Tensor, strength: float) -> Tensor:
        context.strength = strength
        return values.view_as(values)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> tuple[Tensor, None]:
        return -context.strength * slope, None

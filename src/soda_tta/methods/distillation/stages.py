"""The stages that DINE and BETA share: smoothed labels, learning-rate schedules, fine-tuning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from soda_tta.engine.events import Step
from soda_tta.engine.work import Work
from soda_tta.methods.distillation import student as net
from soda_tta.methods.distillation.distillation import Distillation
from soda_tta.types import Array


def smooth(probabilities: Array, topk: int = 1) -> Array:
    """AdaLS: keep the `topk` largest of each row and spread the rest over the other classes.

    >>> smooth(np.array([[0.625, 0.25, 0.125]])).tolist()
    [[0.625, 0.1875, 0.1875]]
    """
    rows = np.asarray(probabilities, np.float64)
    classes = rows.shape[1]
    if topk >= classes:
        kept: Array = rows.copy()
    else:
        places = np.argsort(-rows, axis=1, kind="stable")[:, :topk]
        best = np.take_along_axis(rows, places, axis=1)
        left = np.maximum(
            1 - best.sum(axis=1, keepdims=True), 0
        )  # rounded answers may sum to more than 1
        kept = np.repeat(left / (classes - topk), classes, axis=1)
        np.put_along_axis(kept, places, best, axis=1)
    kept /= kept.sum(axis=1, keepdims=True)
    return np.asarray(kept, np.float32)


def refresh(memory: Array, answers: Array, share: float) -> Array:
    """The label memory moves towards the student's own answers."""
    moved: Array = (share * memory + (1 - share) * answers).astype(np.float32)
    return moved


def distil_rate(progress: float) -> float:
    """The factor of the learning rates while distilling."""
    return float((1 + 10 * progress) ** -1.5)


def dine_finetune_rate(progress: float) -> float:
    """The factor of the learning rates while DINE fine-tunes."""
    return float((11 + 10 * progress) ** -0.75)


def beta_finetune_rate(progress: float) -> float:
    """The factor of the learning rates while BETA fine-tunes."""
    return float((1 + 10 * progress) ** -0.75)


def tenth(steps: int) -> int:
    """A tenth of the steps, at least one."""
    return max(1, steps // 10)


def record_epoch(
    work: Work, epoch: int, lr: float, losses: list[tuple[float, float, float]]
) -> None:
    """One line of the history per epoch, with the means over its steps."""
    if not losses:
        return
    loss, information, cross_entropy = (float(value) for value in np.mean(losses, axis=0))
    work.record(
        Step(
            epoch=epoch,
            step=len(losses),
            of=len(losses),
            lr=lr,
            purpose="probe",
            queries=0,
            losses=(loss,),
            mutual_information=-information,
            cross_entropy=cross_entropy,
        )
    )


def finetune(
    how: Distillation,
    student: net.Student,
    work: Work,
    random: np.random.Generator,
    rate: Callable[[float], float],
) -> None:
    """L_IM alone, no teacher; ends early once no answer changes within a tenth of the run."""
    optimiser = net.optimiser_of(how, student)
    steps = how.finetune_epochs * net.batch_count(len(work.images), how.batch)
    step = 0
    labels = np.zeros(0)
    settled = False
    for epoch in range(1, how.finetune_epochs + 1):
        losses = []
        for _, images in net.weak_batches(work.images, how.batch, random):
            step += 1
            net.set_rates(optimiser, rate(step / steps))
            student.train()
            optimiser.zero_grad()
            loss = net.information_loss(student(images))
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append((float(loss.detach()), float(loss.detach()), 0.0))
            if step % tenth(steps) == 0:
                previous = labels
                labels = net.scores_of([student], work.images).argmax(dim=1).numpy()
                settled = np.array_equal(previous, labels)
                if settled:
                    break
        record_epoch(work, how.epochs + epoch, optimiser.param_groups[1]["lr"], losses)
        if settled:
            return

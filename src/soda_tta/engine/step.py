"""What a batch of images is worth at given parameters: from answers alone, or with a gradient through a white box."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box, Ledger, Transcript, asking, left_to_spend
from soda_tta.data import Images
from soda_tta.objectives.equations import Loss, Objective, perturbation_norm
from soda_tta.objectives.reliable import Selection
from soda_tta.types import Array

if TYPE_CHECKING:
    from torch import Tensor

QUERY_BYTES = 2**28  # adapted images are made and sent in pieces no larger than this
PIECE_BYTES = 2**18  # of images differentiated at once: 21 of 32 px


@dataclass(frozen=True)
class Task:
    """What does not change while learning."""

    images: Images
    box: Box
    ledger: Ledger
    selection: Selection
    objective: Objective
    batch: int
    seed: int
    reserve: int  # queries that must be left for the final answer
    transcript: Transcript | None = (
        None  # answers that survive a kill, where nothing else keeps them
    )

    def asking(self, purpose: str) -> Box:
        return asking(self.box, self.ledger, purpose, self.transcript)

    @property
    def left(self) -> int | None:
        return left_to_spend(self.ledger, self.transcript)

    def loss(self, probabilities: Array, indices: Array, norm: float) -> Loss:
        loss = self.objective(probabilities, *self.selection.of(indices))
        return (
            loss._replace(value=loss.value + self.objective.beta * norm)
            if self.objective.beta
            else loss
        )


def losses_of_candidates(
    task: Task,
    box: Box,
    adaptor: Adaptor,
    thetas: Array,
    indices: Array,
    noise: int,
    *,
    one_norm: bool = False,
) -> list[Loss]:
    """The loss at every candidate. All candidates go to the box together.

    With `one_norm` they share the perturbation's norm at the first: its slope is computed then, and not estimated.
    """
    height, width = task.images.size
    piece = max(1, QUERY_BYTES // (len(thetas) * 3 * height * width * 4))
    answers, norms = [], np.zeros(len(thetas))
    for start in range(0, len(indices), piece):
        part = task.images[indices[start : start + piece]]
        adapted = adaptor.candidates(part, thetas.astype(np.float32), noise)
        if task.objective.beta:
            share = len(part) / len(indices)
            measured = adapted[:1] if one_norm else adapted
            norms += [
                share * perturbation_norm((each - part) / adaptor.deviation) for each in measured
            ]
        rows = box(adapted.reshape(-1, *part.shape[1:]))
        answers.append(rows.reshape(len(thetas), -1, rows.shape[1]))
    candidates = np.concatenate(answers, axis=1)
    return [task.loss(rows, indices, norm) for rows, norm in zip(candidates, norms, strict=True)]


def changes_by_groups(
    task: Task, box: Box, adaptor: Adaptor, thetas: Array, indices: Array, noise: int
) -> tuple[Loss, list[float]]:
    """The loss at the first point, and by how much each group of images changes it at a point of its own.

    To first order: the objective's slope at the answers of the batch, times what became of the group's answers.
    """
    images, groups = (
        task.images[indices],
        np.array_split(np.arange(len(indices)), min(len(thetas) - 1, len(indices))),
    )
    points = thetas.astype(np.float32)
    shifted = [
        adaptor.candidates(images[g], point[None], noise)[0]
        for g, point in zip(groups, points[1:], strict=False)
    ]
    base = adaptor.candidates(images, points[:1], noise)[0]
    rows = box(np.concatenate([base, *shifted]))
    before, after = rows[: len(images)], rows[len(images) :]
    slope = task.objective.slope(before, *task.selection.of(indices))
    each = (slope * (np.asarray(after, np.float64) - before)).sum(axis=1)
    norm = perturbation_norm((base - images) / adaptor.deviation) if task.objective.beta else 0.0
    return task.loss(before, indices, norm), [float(each[group].sum()) for group in groups]


def norm_slope(task: Task, adaptor: Adaptor, theta: Array, indices: Array, noise: int) -> Array:
    """beta times the derivative of the perturbation's norm: the adaptor is ours, so this asks no query.

    The paper, too, computes it where the rest is estimated (C.1.1), and does not scale it by sigma squared.
    """
    import torch

    point = torch.tensor(theta, dtype=torch.float32, requires_grad=True)
    with torch.enable_grad():
        for start, part in pieces(task.images[indices]):
            norm = norm_of(adaptor.differentiable(part, point, noise + start), part, adaptor)
            torch.autograd.backward(
                task.objective.beta * norm * (len(part) / len(indices)), inputs=[point]
            )
    assert point.grad is not None
    slope: Array = point.grad.numpy()
    return slope


def pieces(images: Array) -> Iterator[tuple[int, Tensor]]:
    """A batch in pieces that stay in the cache: one and a half times as fast as the whole at once."""
    import torch

    step = max(4, PIECE_BYTES // images[0].nbytes)
    return (
        (start, torch.from_numpy(images[start : start + step]))
        for start in range(0, len(images), step)
    )


def norm_of(adapted: Tensor, images: Tensor, adaptor: Adaptor) -> Tensor:
    """`perturbation_norm` of tensors."""
    import torch

    norm: Tensor = torch.linalg.matrix_norm((adapted - images) / adaptor.deviation, ord=1).mean()
    return norm


def loss_and_gradient(
    task: Task, box: Box, adaptor: Adaptor, theta: Array, indices: Array, noise: int
) -> tuple[Loss, Array]:
    """The loss and its true gradient: one forward and one backward through the white box.

    The objective is differentiated by hand up to the probabilities; PyTorch carries that slope back to theta.
    """
    import torch

    point = torch.tensor(theta, dtype=torch.float32, requires_grad=True)
    answers, norms, ends = [], [], []
    for start, part in pieces(task.images[indices]):
        adapted = adaptor.differentiable(part, point, noise + start)  # each piece has its own noise
        answers.append(box.differentiable(adapted))
        norms.append(norm_of(adapted, part, adaptor) * (len(part) / len(indices)))
        ends.append(start + len(part))
    rows = np.concatenate([part.detach().numpy() for part in answers])
    slopes = np.split(task.objective.slope(rows, *task.selection.of(indices)), ends[:-1])
    beta = torch.tensor(float(task.objective.beta))
    for part, norm, slope in zip(answers, norms, slopes, strict=True):
        torch.autograd.backward(
            [part, norm], [torch.from_numpy(slope).to(part.dtype), beta], inputs=[point]
        )
    assert point.grad is not None
    return task.loss(rows, indices, sum(float(norm.detach()) for norm in norms)), point.grad.numpy()

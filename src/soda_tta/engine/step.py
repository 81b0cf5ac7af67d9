"""The loss of a batch at given parameters: from responses alone, or with a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box, Meter
from soda_tta.data import Images
from soda_tta.devices import as_array, as_tensor, device_of, working_on
from soda_tta.objectives import Loss, Objective, Selection, perturbation_norm
from soda_tta.types import Array

if TYPE_CHECKING:
    from torch import Tensor

QUERY_BYTES = 2**28  # adapted images are made and sent in pieces no larger than this
PIECE_BYTES = 2**18  # of images differentiated at once: 21 images of 32 pixels


@dataclass(frozen=True)
class Task:
    """What does not change while an adaptor is trained.

    Parameters
    ----------
    images : the images to learn from.
    meter : the model, with its ledger.
    selection : which pseudo-labels are trusted.
    objective : what is minimised.
    batch : images per step.
    seed : everything random follows from it.
    reserve : queries that must be left for the final pass.
    """

    images: Images
    meter: Meter
    selection: Selection
    objective: Objective
    batch: int
    seed: int
    reserve: int

    def loss(self, probabilities: Array, indices: Array, norm: float) -> Loss:
        """The loss of these images, given their probabilities and the perturbations' norm."""
        loss = self.objective(probabilities, *self.selection.of(indices))
        if not self.objective.beta:
            return loss
        return loss._replace(value=loss.value + self.objective.beta * norm)


@dataclass(frozen=True)
class Batch:
    """One step: a task, the images it uses and the seed of its dropout."""

    task: Task
    box: Box
    adaptor: Adaptor
    indices: Array
    noise: int


def losses_of_candidates(batch: Batch, thetas: Array, *, shared_norm: bool = False) -> list[Loss]:
    """The loss at every candidate. All candidates go to the box together.

    With `shared_norm` all candidates get the perturbation's norm of the first: its slope is then
    computed instead of estimated from differences.
    """
    task = batch.task
    height, width = task.images.size
    piece = max(1, QUERY_BYTES // (len(thetas) * 3 * height * width * 4))
    parts = []
    norms = np.zeros(len(thetas))
    for start in range(0, len(batch.indices), piece):
        images = task.images[batch.indices[start : start + piece]]
        adapted = batch.adaptor.candidates(images, thetas.astype(np.float32), batch.noise)
        if task.objective.beta:
            share = len(images) / len(batch.indices)
            measured = adapted[:1] if shared_norm else adapted
            norms += [share * norm_of_change(batch.adaptor, images, each) for each in measured]
        rows = batch.box(adapted.reshape(-1, *images.shape[1:]))
        parts.append(rows.reshape(len(thetas), -1, rows.shape[1]))
    candidates = np.concatenate(parts, axis=1)
    pairs = zip(candidates, norms, strict=True)
    return [task.loss(rows, batch.indices, norm) for rows, norm in pairs]


def norm_of_change(adaptor: Adaptor, images: Array, adapted: Array) -> float:
    """The norm of what an adaptor added, in normalised pixels."""
    return perturbation_norm((adapted - images) / adaptor.deviation)


def changes_by_group(batch: Batch, thetas: Array) -> tuple[Loss, list[float]]:
    """The loss at the first point, and how much each group of images changes it at its own point.

    To first order: the objective's slope at the responses of the batch, times the change of the
    group's responses.
    """
    task = batch.task
    images = task.images[batch.indices]
    count = min(len(thetas) - 1, len(images))
    groups = np.array_split(np.arange(len(images)), count)
    points = thetas.astype(np.float32)
    shifted = [
        batch.adaptor.candidates(images[group], point[None], batch.noise)[0]
        for group, point in zip(groups, points[1:], strict=False)
    ]
    base = batch.adaptor.candidates(images, points[:1], batch.noise)[0]
    rows = batch.box(np.concatenate([base, *shifted]))
    before = rows[: len(images)]
    after = rows[len(images) :]
    slope = task.objective.slope(before, *task.selection.of(batch.indices))
    each = (slope * (np.asarray(after, np.float64) - before)).sum(axis=1)
    norm = norm_of_change(batch.adaptor, images, base) if task.objective.beta else 0.0
    loss = task.loss(before, batch.indices, norm)
    return loss, [float(each[group].sum()) for group in groups]


def norm_slope(batch: Batch, theta: Array) -> Array:
    """beta times the derivative of the perturbation's norm; the adaptor is ours: no query is sent.

    The paper, too, computes it where the rest is estimated (C.1.1), and does not scale it by sigma
    squared.
    """
    import torch

    device = batch.adaptor.device
    point = torch.tensor(theta, dtype=torch.float32, device=device, requires_grad=True)
    beta = batch.task.objective.beta
    with torch.enable_grad(), working_on(device):
        for start, part in pieces(batch.task.images[batch.indices], device):
            adapted = batch.adaptor.differentiable(part, point, batch.noise + start)
            norm = norm_of_tensors(adapted, part, batch.adaptor)
            share = len(part) / len(batch.indices)
            torch.autograd.backward(beta * norm * share, inputs=[point])
    assert point.grad is not None
    return as_array(point.grad)


def loss_and_gradient(batch: Batch, theta: Array) -> tuple[Loss, Array]:
    """The loss and its true gradient: one forward and one backward pass through the white box.

    Everything is computed on the device of the module. The objective is differentiated by hand up
    to the probabilities; PyTorch carries that slope back to theta.
    """
    import torch

    task = batch.task
    device = device_of(batch.box.module)
    point = torch.tensor(theta, dtype=torch.float32, device=device, requires_grad=True)
    responses, norms, ends = [], [], []
    for start, part in pieces(task.images[batch.indices], device):
        with working_on(device):  # each piece has its own noise
            adapted = batch.adaptor.differentiable(part, point, batch.noise + start)
            responses.append(batch.box.differentiable(adapted))
        share = len(part) / len(batch.indices)
        norms.append(norm_of_tensors(adapted, part, batch.adaptor) * share)
        ends.append(start + len(part))
    rows = np.concatenate([as_array(part) for part in responses])
    slope = task.objective.slope(rows, *task.selection.of(batch.indices))
    beta = torch.tensor(float(task.objective.beta), device=device)
    for part, norm, own in zip(responses, norms, np.split(slope, ends[:-1]), strict=True):
        slopes = [as_tensor(own, device, dtype=part.dtype), beta]
        torch.autograd.backward([part, norm], slopes, inputs=[point])
    assert point.grad is not None
    total = sum(float(each.detach()) for each in norms)
    return task.loss(rows, batch.indices, total), as_array(point.grad)


def pieces(images: Array, device: str) -> Iterator[tuple[int, Tensor]]:
    """A batch in pieces that fit in the cache: half as fast again as the whole at once."""
    step = max(4, PIECE_BYTES // images[0].nbytes)
    for start in range(0, len(images), step):
        yield start, as_tensor(images[start : start + step], device)


def norm_of_tensors(adapted: Tensor, images: Tensor, adaptor: Adaptor) -> Tensor:
    """`norm_of_change` of tensors."""
    import torch

    change = (adapted - images) / adaptor.deviation
    mean: Tensor = torch.linalg.matrix_norm(change, ord=1).mean()
    return mean

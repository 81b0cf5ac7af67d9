"""What several methods need: slices in order, a step of the history, a copy of the model, seeds."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from soda_tta.box import Box, ModuleBox
from soda_tta.engine.events import Step
from soda_tta.objectives import Loss
from soda_tta.search import Round


def in_order(count: int, batch: int) -> Iterator[slice]:
    """Slices of at most `batch` that cover `count` places in order.

    >>> list(in_order(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, count, batch):
        yield slice(start, min(start + batch, count))


def own_copy(box: Box) -> tuple[Any, ModuleBox]:
    """A copy of the model that may be changed, and a box around it. The model itself is not."""
    module = copy.deepcopy(box.module)
    return module, ModuleBox(module, input=box.input, logits=box.logits)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch's own randomness (initial weights, dropout) and restore it afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        yield


def step_of(completed: Round, number: int) -> Step:
    """A round of the search as a line of the history."""
    return Step(
        epoch=number,
        step=1,
        of=1,
        lr=completed.length,
        purpose="probe",
        queries=completed.queries,
        losses=completed.losses,
        mutual_information=-completed.losses[0],
        cross_entropy=0.0,
    )


def step_of_losses(
    place: tuple[int, int, int], *, lr: float, images: int, losses: Sequence[Loss]
) -> Step:
    """A step of a training loop as a line of the history.

    Parameters
    ----------
    place : its epoch, its number in that epoch, and the steps of the epoch.
    lr : the learning rate.
    images : how many images each candidate was queried for.
    losses : those of all candidates, the current one first.
    """
    epoch, number, of = place
    return Step(
        epoch=epoch,
        step=number,
        of=of,
        lr=lr,
        purpose="probe",
        queries=len(losses) * images,
        losses=tuple(loss.value for loss in losses),
        mutual_information=losses[0].mutual_information,
        cross_entropy=losses[0].cross_entropy,
    )

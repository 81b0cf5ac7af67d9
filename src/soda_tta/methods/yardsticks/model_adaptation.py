"""MA-SO: the model itself is trained with SODA's objective (paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.devices import as_array, as_tensor, device_of
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method
from soda_tta.methods.tools import in_order, own_copy, seeded, step_of_losses
from soda_tta.objectives import Reliable, Soda
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import SGD
from soda_tta.settings import setting
from soda_tta.types import Array, Needs


@dataclass(frozen=True, kw_only=True)
class ModelAdaptation(Method):
    """Train a copy of the model, in training mode and except its last linear layer."""

    name: str = "ma-so"
    summary: str = "White box: SODA's objective trains the model itself."
    needs: Needs = "weights"
    epochs: int = setting(150, "passes over all images")
    batch: int = setting(256, "images per step")
    lr: float = setting(1e-3, "learning rate")
    momentum: float = setting(0.9, "share of the previous step that is kept")
    weight_decay: float = setting(1e-5, "share of the weights that is added to their gradient")
    tau: float = setting(0.9, "least confidence of a trusted pseudo-label")
    rho: float = setting(0.9, "share of each class that is left out, the least confident first")
    alpha: float = setting(1e-4, "weight of the cross-entropy on trusted images")

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise MethodError(f"{self.name} needs epochs >= 1 and batch >= 1.")
        # These refuse impossible settings, as soda does.
        SGD(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        self.reliable()
        self.objective()

    def reliable(self) -> Reliable:
        """Which pseudo-labels are trusted."""
        return Reliable(tau=self.tau, rho=self.rho)

    def objective(self) -> Soda:
        """What is minimised."""
        return Soda(alpha=self.alpha)

    def queries(self, images: int) -> dict[str, int]:
        """One pass per epoch through the copy of the model, and a final one."""
        return {"probe": images * self.epochs, "evaluate": images}

    def answer(self, work: Work) -> Array:
        """Train, then answer with the trained copy."""
        with seeded(work.seed):  # a model may have dropout
            return self.train_and_answer(work)

    def train_and_answer(self, work: Work) -> Array:
        """The same; PyTorch's own randomness is seeded by the caller."""
        import torch

        module, box = own_copy(work.box)
        selection = self.reliable()(work.before)
        objective = self.objective()
        optimiser = torch.optim.SGD(
            trained_weights(module),
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        for epoch in range(1, self.epochs + 1):
            batches = self.batches(work, epoch)
            module.train()
            for number, indices in enumerate(batches, start=1):
                work.meter.spend(len(indices), "probe")
                rows = box.differentiable(as_tensor(work.seen(indices), device_of(box.module)))
                probabilities = as_array(rows)
                trusted = selection.of(indices)
                loss = objective(probabilities, *trusted)
                slope = objective.slope(probabilities, *trusted)
                optimiser.zero_grad()
                rows.backward(as_tensor(slope, device_of(box.module), dtype=rows.dtype))
                optimiser.step()
                place = (epoch, number, len(batches))
                work.record(step_of_losses(place, lr=self.lr, images=len(indices), losses=[loss]))
        count = len(work.images)
        work.meter.spend(count, "evaluate")
        return np.concatenate([box(work.seen(place)) for place in in_order(count, 512)])

    def batches(self, work: Work, epoch: int) -> list[Array]:
        """The images of each step; batch norm in training mode needs at least two."""
        count = len(work.images)
        order = generator(work.seed, RandomStream.MODEL_ORDER, epoch).permutation(count)
        batches = [order[place] for place in in_order(count, self.batch)]
        return [indices for indices in batches if len(indices) > 1]


def trained_weights(module: Any) -> list[Any]:
    """All weights except those of the last linear layer."""
    import torch

    linear = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    last = {id(weight) for weight in linear[-1].parameters()} if linear else set()
    weights = [weight for weight in module.parameters() if id(weight) not in last]
    return [weight.requires_grad_(True) for weight in weights]


ma_so = ModelAdaptation()

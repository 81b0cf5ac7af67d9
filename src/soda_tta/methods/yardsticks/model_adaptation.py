"""MA-SO: the paper's model adaptation with SODA's objective, the reference for what touching the model would bring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.engine.events import Step
from soda_tta.methods.method import Method, Work, in_order, own_copy, seeded
from soda_tta.objectives.equations import Soda
from soda_tta.objectives.reliable import Reliable
from soda_tta.search import SGD
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class ModelAdaptation(Method):
    """Train a copy of the model (all but its last linear layer, in training mode) on SODA's objective."""

    name: str = "ma-so"
    summary: str = "White box: SODA's objective trains the model itself."
    needs: str = "weights"
    epochs: int = 150
    batch: int = 256
    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 1e-5
    tau: float = 0.9
    rho: float = 0.9
    alpha: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        SGD(
            lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
        )  # refuse the impossible, as soda does
        Reliable(tau=self.tau, rho=self.rho), Soda(alpha=self.alpha)

    def queries(self, images: int) -> dict[str, int]:
        return {"probe": images * self.epochs, "evaluate": images}

    def answer(self, given: Work) -> Array:
        with seeded(given.seed):  # a model may have dropout
            return self.learn(given)

    def learn(self, given: Work) -> Array:
        import torch

        module, box = own_copy(given.box)
        selection, objective = (
            Reliable(tau=self.tau, rho=self.rho)(given.before),
            Soda(alpha=self.alpha),
        )
        linear = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
        last = {id(weight) for weight in linear[-1].parameters()} if linear else set()
        trained = [
            weight.requires_grad_(True) for weight in module.parameters() if id(weight) not in last
        ]
        optimiser = torch.optim.SGD(
            trained, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
        )
        count = len(given.images)
        for epoch in range(1, self.epochs + 1):
            order = np.random.default_rng([given.seed, epoch]).permutation(count)
            batches = [order[start : start + self.batch] for start in range(0, count, self.batch)]
            batches = [
                batch for batch in batches if len(batch) > 1
            ]  # batch norm in training mode needs two
            module.train()
            for number, indices in enumerate(batches, start=1):
                given.ledger.spend(len(indices), "probe")
                rows = box.differentiable(torch.from_numpy(given.seen(indices)))
                plain, trusted = rows.detach().numpy(), selection.of(indices)
                loss, slope = objective(plain, *trusted), objective.slope(plain, *trusted)
                optimiser.zero_grad()
                rows.backward(torch.from_numpy(slope).to(rows.dtype))
                optimiser.step()
                parts = (loss.value,), loss.mutual_information, loss.cross_entropy
                given.tell(
                    Step(epoch, number, len(batches), self.lr, "probe", len(indices), *parts)
                )
        given.ledger.spend(count, "evaluate")
        return np.concatenate([box(given.seen(place)) for place in in_order(count, 512)])


ma_so = ModelAdaptation()

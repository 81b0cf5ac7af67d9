"""bn and tent: yardsticks the paper lacks. Both need the weights; neither is a black-box competitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.engine.events import Step
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Work, in_order, own_copy
from soda_tta.search.steps import check_lr
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class BatchStatistics(Method):
    """Normalise by the statistics of the test batch instead of those of the training set."""

    name: str = "bn"
    summary: str = "White box: batch-norm statistics of the test batch."
    needs: str = "weights"

    def idle(self) -> tuple[str, ...]:
        return ("epochs",)

    def queries(self, images: int) -> dict[str, int]:
        return {"probe": images}

    def answer(self, given: Work) -> Array:
        import torch

        module, box = own_copy(given.box)
        use_batch_statistics(module)
        answers = []
        with torch.inference_mode():
            for place in in_order(len(given.images), self.batch):
                images = torch.from_numpy(given.seen(place))
                given.ledger.spend(len(images), "probe")
                answers.append(box.differentiable(images).numpy())
        return np.concatenate(answers)


@dataclass(frozen=True, kw_only=True)
class Tent(Method):
    """Minimise the entropy of each batch by the scales and shifts of the batch norms; one step a batch.

    As in the published code, a batch is answered from before its own step, and the state carries over.
    """

    name: str = "tent"
    summary: str = "White box: entropy minimised through the batch norms, one Adam step a batch."
    needs: str = "weights"
    lr: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_lr(self.lr)

    def queries(self, images: int) -> dict[str, int]:
        return {"probe": images * self.epochs}

    def answer(self, given: Work) -> Array:
        import torch

        module, box = own_copy(given.box)
        module.requires_grad_(False)
        scales = [
            weight.requires_grad_(True)
            for norm in use_batch_statistics(module)
            for weight in norm.parameters()
        ]
        optimiser = torch.optim.Adam(scales, lr=self.lr)
        answers = np.zeros_like(given.before)
        for epoch in range(1, self.epochs + 1):
            places = list(in_order(len(given.images), self.batch))
            for number, place in enumerate(places, start=1):
                images = torch.from_numpy(given.seen(place))
                given.ledger.spend(len(images), "probe")
                rows = box.differentiable(images)
                loss = -(rows * torch.log(rows.clamp_min(1e-12))).sum(dim=1).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                answers[place] = rows.detach().numpy()
                value = float(loss.detach())
                given.tell(
                    Step(
                        epoch,
                        number,
                        len(places),
                        self.lr,
                        "probe",
                        len(images),
                        (value,),
                        0.0,
                        value,
                    )
                )
        return answers


def use_batch_statistics(module: Any) -> list[Any]:
    """Make every 2-d batch norm use the batch it is given; returns them."""
    import torch

    norms = [layer for layer in module.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    if not norms:
        raise MethodError("this model has no BatchNorm2d layer; bn and tent adapt nothing else.")
    module.eval()
    for norm in norms:
        norm.train()
        norm.track_running_stats = False
        norm.running_mean = norm.running_var = None
    return norms


bn, tent = BatchStatistics(), Tent()

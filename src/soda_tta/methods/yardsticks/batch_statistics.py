"""bn and tent: yardsticks that the paper lacks. Both need the weights: they are not black-box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.devices import as_array, as_tensor, device_of
from soda_tta.engine.events import Step
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method
from soda_tta.methods.tools import in_order, own_copy
from soda_tta.objectives import mutual_information
from soda_tta.search.steps import check_lr
from soda_tta.settings import setting
from soda_tta.types import Array, Needs


@dataclass(frozen=True, kw_only=True)
class BatchStatistics(Method):
    """Normalise by the statistics of the test batch instead of those of the training set."""

    name: str = "bn"
    summary: str = "White box: batch-norm statistics of the test batch."
    needs: Needs = "weights"
    batch: int = setting(200, "images whose statistics are taken together")

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise MethodError(f"{self.name} needs batch >= 1.")

    def queries(self, images: int) -> dict[str, int]:
        """One pass through the copy of the model."""
        return {"probe": images}

    def answer(self, work: Work) -> Array:
        """Answer batch by batch with a copy of the model."""
        import torch

        module, box = own_copy(work.box)
        use_batch_statistics(module)
        rows = []
        with torch.inference_mode():
            for place in in_order(len(work.images), self.batch):
                images = as_tensor(work.seen(place), device_of(box.module))
                work.meter.spend(len(images), "probe")
                rows.append(as_array(box.differentiable(images)))
        return np.concatenate(rows)


@dataclass(frozen=True, kw_only=True)
class Tent(Method):
    """Minimise the entropy of each batch through the batch norms; one step per batch.

    As in the published code, a batch is answered from before its own step, and the state carries
    over to the next batch.
    """

    name: str = "tent"
    summary: str = "White box: entropy minimised through the batch norms, one Adam step per batch."
    needs: Needs = "weights"
    epochs: int = setting(1, "passes over all images")
    batch: int = setting(200, "images whose statistics are taken together, and per step")
    lr: float = setting(1e-3, "learning rate")

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise MethodError(f"{self.name} needs epochs >= 1 and batch >= 1.")
        check_lr(self.lr)

    def queries(self, images: int) -> dict[str, int]:
        """One pass per epoch through the copy of the model."""
        return {"probe": images * self.epochs}

    def answer(self, work: Work) -> Array:
        """Answer and adapt batch by batch."""
        import torch

        module, box = own_copy(work.box)
        module.requires_grad_(False)
        norms = use_batch_statistics(module)
        scales = [weight.requires_grad_(True) for norm in norms for weight in norm.parameters()]
        optimiser = torch.optim.Adam(scales, lr=self.lr)
        answers = np.zeros_like(work.before)
        for epoch in range(1, self.epochs + 1):
            places = list(in_order(len(work.images), self.batch))
            for number, place in enumerate(places, start=1):
                images = as_tensor(work.seen(place), device_of(box.module))
                work.meter.spend(len(images), "probe")
                rows = box.differentiable(images)
                loss = -(rows * torch.log(rows.clamp_min(1e-12))).sum(dim=1).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                answers[place] = as_array(rows)
                entropy = float(loss.detach())
                work.record(
                    Step(
                        epoch=epoch,
                        step=number,
                        of=len(places),
                        lr=self.lr,
                        purpose="probe",
                        queries=len(images),
                        losses=(entropy,),
                        mutual_information=mutual_information(answers[place]),
                        cross_entropy=entropy,
                    )
                )
        return answers


def use_batch_statistics(module: Any) -> list[Any]:
    """Make every 2-d batch norm use the statistics of its batch; returns the norms."""
    import torch

    norms = [layer for layer in module.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    if not norms:
        raise MethodError("this model has no BatchNorm2d layer; bn and tent adapt nothing else.")
    module.eval()
    for norm in norms:
        norm.train()
        norm.track_running_stats = False
        norm.running_mean = None
        norm.running_var = None
    return norms


bn = BatchStatistics()
tent = Tent()

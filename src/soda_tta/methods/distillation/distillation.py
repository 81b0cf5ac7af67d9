"""What DINE and BETA share: a local target network learns from the first look alone; the box is never asked again."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from soda_tta.engine.events import Step
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Outcome, Work, seeded
from soda_tta.types import Array

if TYPE_CHECKING:
    from soda_tta.methods.distillation.student import Student

RANDOM = ("resnet20-random", "resnet32-random")
TRAINED = (  # of the zoo
    *("cifar100_resnet20", "cifar100_resnet32", "cifar10_resnet20", "cifar10_resnet32"),
    *("imagenet_resnet50", "imagenet_efficientnet_lite0"),
)
GIVEN_LR, RANDOM_LR = 1e-3, 1e-2  # 1e-3 presumes a trained backbone; a random one would hardly move


@dataclass(frozen=True, kw_only=True)
class Distillation(Method):
    """Teach a target network from the box's answers, then sharpen it on its own.

    `module`: a torch module, or a function from the number of classes to one, for images in [0, 1]; it is copied, and
    all but its last Linear layer becomes the backbone. Without it, `target` names a network with random weights, or one
    of the zoo with those it was trained to; ImageNet's want small images larger (`size`). `backbone_lr`: 1e-2 for
    random weights, otherwise 1e-3, unless stated.
    """

    needs: str = "probabilities"
    epochs: int = 120
    finetune_epochs: int = 30
    batch: int = 64
    backbone_lr: float | None = None
    head_lr: float = 1e-2
    momentum: float = 0.9
    weight_decay: float = 1e-3
    ema: float = 0.6  # share of the old label memory at an update
    mix: float = 1.0  # weight of the MixUp loss
    mixup_alpha: float = 0.3  # of its Beta distribution
    topk: int = 1  # answers of the box kept as they are; the rest is spread evenly
    target: str = "resnet20-random"
    size: int = 0  # pixels a side at which the target sees the images; 0: as they are
    module: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch < 2 or self.finetune_epochs < 0 or self.topk < 1:
            raise MethodError(f"{self.name} needs batch >= 2, finetune_epochs >= 0 and topk >= 1.")
        if self.size < 0:
            raise MethodError(
                f"size={self.size} is in pixels; give 0 for the images as they are, or more."
            )
        if min(self.backbone_rate, self.head_lr, self.mixup_alpha) <= 0:
            raise MethodError(f"{self.name} needs learning rates and a mixup_alpha above 0.")
        if (
            not 0 <= self.ema <= 1
            or not 0 <= self.momentum < 1
            or min(self.mix, self.weight_decay) < 0
        ):
            raise MethodError(
                f"{self.name} needs ema in [0, 1], momentum in [0, 1), and no negative weight."
            )
        if self.target not in RANDOM + TRAINED:
            known = ", ".join(RANDOM + TRAINED)
            raise MethodError(
                f"there is no target {self.target!r}; choose one of {known}, or give module=."
            )
        if self.module is not None and not callable(self.module):
            raise MethodError(
                "module takes a torch module or a function that makes one, from Python only."
            )

    @property
    def backbone_rate(self) -> float:
        if self.backbone_lr is not None:
            return self.backbone_lr
        return RANDOM_LR if self.module is None and self.target in RANDOM else GIVEN_LR

    @property
    def settings(self) -> dict[str, Any]:
        hidden = ("name", "summary", "needs")
        found = {
            part.name: getattr(self, part.name) for part in fields(self) if part.name not in hidden
        }
        found["backbone_lr"] = self.backbone_rate
        if self.module is not None:
            found |= {"target": "given", "module": describe(self.module)}
        return found

    def counted(self, images: int) -> int:
        return self.epochs + self.finetune_epochs

    def adapt(self, given: Work) -> Outcome:
        if len(given.images) < 2:
            raise MethodError(
                f"{self.name} trains a network and needs at least 2 images; `deployed` answers one."
            )
        with seeded(given.seed):
            return self.learn(given, np.random.default_rng([given.seed, 1]))

    @abstractmethod
    def learn(self, given: Work, chance: np.random.Generator) -> Outcome:
        """Train and answer; torch's own generator is seeded and will be put back."""


def describe(module: Any) -> str:
    """A module in words that tell it from another: kind, size, weights. A function only by its name."""
    if not hasattr(module, "state_dict") or isinstance(module, type):
        return f"made by {getattr(module, '__qualname__', type(module).__name__)}"
    digest = hashlib.sha256()
    for weight in module.state_dict().values():
        digest.update(weight.detach().cpu().double().numpy().tobytes())
    size = sum(weight.numel() for weight in module.parameters())
    return f"{type(module).__name__}, {size:,} parameters, weights {digest.hexdigest()[:12]}, given"


def smooth(probabilities: Array, topk: int = 1) -> Array:
    """AdaLS: keep the `topk` largest of each row and spread what is left evenly over the other classes.

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
    return float((1 + 10 * progress) ** -1.5)


def dine_finetune_rate(progress: float) -> float:
    return float((11 + 10 * progress) ** -0.75)


def beta_finetune_rate(progress: float) -> float:
    return float((1 + 10 * progress) ** -0.75)


def tenth(steps: int) -> int:
    """A tenth of the steps, at least one."""
    return max(1, steps // 10)


def tell_epoch(
    given: Work, epoch: int, lr: float, losses: list[tuple[float, float, float]]
) -> None:
    """One line of history an epoch: mean loss, mutual information and cross-entropy over its steps; no query."""
    if not losses:
        return
    loss, information, cross_entropy = (float(value) for value in np.mean(losses, axis=0))
    given.tell(
        Step(epoch, len(losses), len(losses), lr, "probe", 0, (loss,), -information, cross_entropy)
    )


def finetune(
    how: Distillation,
    student: Student,
    given: Work,
    chance: np.random.Generator,
    rate: Callable[[float], float],
) -> None:
    """L_IM alone, no teacher; ends early once no answer changes between two looks (a tenth of the run apart)."""
    from soda_tta.methods.distillation import student as net

    optimiser = net.optimiser_of(how, student)
    steps = how.finetune_epochs * net.batch_count(len(given.images), how.batch)
    step, labels, settled = 0, np.zeros(0), False
    for epoch in range(1, how.finetune_epochs + 1):
        losses = []
        for _, images in net.weak_batches(given.images, how.batch, chance):
            step += 1
            net.set_rates(optimiser, rate(step / steps))
            student.train()
            optimiser.zero_grad()
            loss = net.information_loss(student(images))
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append((float(loss.detach()), float(loss.detach()), 0.0))
            if step % tenth(steps) == 0:
                before, labels = (
                    labels,
                    net.scores_of([student], given.images).argmax(dim=1).numpy(),
                )
                settled = np.array_equal(before, labels)
                if settled:
                    break
        tell_epoch(given, how.epochs + epoch, optimiser.param_groups[1]["lr"], losses)
        if settled:
            return

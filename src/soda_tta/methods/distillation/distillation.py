"""What DINE and BETA share: a local network learns from the first pass alone."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import DESCRIPTION, Method, Outcome
from soda_tta.methods.tools import seeded
from soda_tta.randomness import RandomStream, generator
from soda_tta.settings import setting

RANDOM = ("resnet20-random", "resnet32-random")
TRAINED = (  # networks of the zoo
    *("cifar100_resnet20", "cifar100_resnet32", "cifar10_resnet20", "cifar10_resnet32"),
    *("imagenet_resnet50", "imagenet_efficientnet_lite0"),
)
TRAINED_LR = 1e-3  # presumes a trained backbone
RANDOM_LR = 1e-2  # at 1e-3 random weights would hardly move


@dataclass(frozen=True, kw_only=True)
class Distillation(Method):
    """Teach a local network from the model's responses, then fine-tune it on its own.

    Parameters
    ----------
    module : a torch module, or a function from the number of classes to one, for images in [0, 1].
        It is copied; all but its last Linear layer becomes the backbone. Without it, `target` names
        a network with random weights or a trained one of the zoo; those of ImageNet need small
        images to be enlarged (`size`).
    """

    epochs: int = setting(120, "passes over all images while distilling")
    finetune_epochs: int = setting(30, "epochs on mutual information alone, after distilling")
    batch: int = setting(64, "images per step")
    backbone_lr: float | None = setting(
        None, "learning rate of the given network; 0.01 for random weights, 0.001 for others"
    )
    head_lr: float = setting(1e-2, "learning rate of the new layers that replace its last one")
    momentum: float = setting(0.9, "share of the previous step that is kept")
    weight_decay: float = setting(1e-3, "share of the weights that is added to their gradient")
    ema: float = setting(0.6, "share of a remembered answer that is kept when it is renewed")
    mix: float = setting(1.0, "weight of the MixUp loss")
    mixup_alpha: float = setting(0.3, "parameter of the beta distribution of MixUp's shares")
    topk: int = setting(1, "largest probabilities kept as they are; the rest is spread evenly")
    target: str = setting(
        "resnet20-random", "the local network: resnet20-random, or one of the zoo to begin from"
    )
    size: int = setting(
        0, "pixels per side at which the local network sees the images; 0: as they are"
    )
    module: Any = field(
        default=None,
        repr=False,
        metadata={"meaning": "a torch module in place of the target, from Python only"},
    )

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.finetune_epochs < 0 or self.batch < 2 or self.topk < 1:
            raise MethodError(
                f"{self.name} needs epochs >= 1, finetune_epochs >= 0, batch >= 2 and topk >= 1."
            )
        if self.size < 0:
            raise MethodError(
                f"{self.size} is not a valid size; give pixels, or 0 for the images as they are."
            )
        self._check_rates()
        if self.target not in RANDOM + TRAINED:
            names = ", ".join(RANDOM + TRAINED)
            raise MethodError(
                f"there is no target {self.target!r}; choose one of {names}, or give module=."
            )
        if self.module is not None and not callable(self.module):
            raise MethodError("module must be a torch module or a function that makes one.")

    def _check_rates(self) -> None:
        if min(self.backbone_rate, self.head_lr, self.mixup_alpha) <= 0:
            raise MethodError(f"{self.name} needs learning rates and mixup_alpha above 0.")
        shares_fit = 0 <= self.ema <= 1 and 0 <= self.momentum < 1
        if not shares_fit or min(self.mix, self.weight_decay) < 0:
            raise MethodError(
                f"{self.name} needs ema in [0, 1], momentum in [0, 1), and mix and weight_decay "
                "that are not negative."
            )

    @property
    def backbone_rate(self) -> float:
        """The learning rate of the backbone."""
        if self.backbone_lr is not None:
            return self.backbone_lr
        random = self.module is None and self.target in RANDOM
        return RANDOM_LR if random else TRAINED_LR

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting; a module as a description of it."""
        names = [each.name for each in fields(self) if each.name not in DESCRIPTION]
        settings = {name: getattr(self, name) for name in names}
        settings["backbone_lr"] = self.backbone_rate
        if self.module is not None:
            settings |= {"target": "given", "module": describe(self.module)}
        return settings

    def last_epoch(self, images: int) -> int:
        """The epochs of both stages."""
        return self.epochs + self.finetune_epochs

    def adapt(self, work: Work) -> Outcome:
        """Train a local network and answer with it."""
        if len(work.images) < 2:
            raise MethodError(
                f"{self.name} trains a network and needs at least 2 images; "
                "method='deployed' answers one."
            )
        with seeded(work.seed):
            return self.learn(work, generator(work.seed, RandomStream.STUDENT))

    @abstractmethod
    def learn(self, work: Work, random: np.random.Generator) -> Outcome:
        """Train and answer; PyTorch's own randomness is seeded and restored by the caller."""


def describe(module: Any) -> str:
    """Identify a module by kind, size and weights; a function only by its name."""
    if not hasattr(module, "state_dict") or isinstance(module, type):
        return f"made by {getattr(module, '__qualname__', type(module).__name__)}"
    digest = hashlib.sha256()
    for weight in module.state_dict().values():
        digest.update(weight.detach().cpu().double().numpy().tobytes())
    size = sum(weight.numel() for weight in module.parameters())
    return f"{type(module).__name__}, {size:,} parameters, weights {digest.hexdigest()[:12]}, given"

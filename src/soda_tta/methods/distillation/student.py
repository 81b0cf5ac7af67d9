"""The local target network of DINE and BETA, and the steps that train it; the deployed model is not involved."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from soda_tta.box import Input
from soda_tta.box.backends.torch_module import prepared_tensor
from soda_tta.data import Images
from soda_tta.errors import MethodError
from soda_tta.methods.distillation.views import weak
from soda_tta.types import Array
from soda_tta.zoo import find
from soda_tta.zoo.resnet import cifar_resnet

if TYPE_CHECKING:
    from soda_tta.methods.distillation.distillation import Distillation

WIDTH = 256  # of the bottleneck
BLOCKS = {"resnet20-random": 3, "resnet32-random": 5}


class Tap(nn.Module):
    """Stands where the last linear layer was and keeps what came in, whatever the module does with the rest."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear, self.seen = linear.requires_grad_(False), torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        self.seen = x
        scores: Tensor = self.linear(x)
        return scores


class Student(nn.Module):
    """Resize and normalise -> backbone -> Linear d x 256, batch norm -> weight-normalised Linear 256 x K: logits."""

    def __init__(self, module: nn.Module, classes: int, input: Input) -> None:
        super().__init__()
        self.backbone, self.tap = tapped(module)
        size = self.tap.linear.in_features
        self.head = nn.ModuleDict(
            {
                "bottleneck": nn.Sequential(nn.Linear(size, WIDTH), nn.BatchNorm1d(WIDTH)),
                "classifier": nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, classes)),
            }
        )
        nn.init.zeros_(self.head["classifier"].bias)  # type: ignore[arg-type]
        self.size, self.input = size, input

    def features(self, images: Tensor) -> Tensor:
        if self.input.size not in (None, tuple(images.shape[2:])):
            images = functional.interpolate(
                images, self.input.size, mode="bilinear", antialias=True
            )
        self.backbone(prepared_tensor(self.input, images))
        seen, self.tap.seen = self.tap.seen, torch.empty(0)  # keep no graph alive
        return seen

    def classify(self, features: Tensor) -> Tensor:
        scores: Tensor = self.head["classifier"](self.head["bottleneck"](features))
        return scores

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.features(images))

    def groups(self, backbone_lr: float, head_lr: float) -> list[dict[str, Any]]:
        """The two groups of parameters an optimiser sees, each with its own rate."""
        trained = [weight for weight in self.backbone.parameters() if weight.requires_grad]
        return [
            {"params": trained, "lr": backbone_lr, "lr0": backbone_lr},
            {"params": list(self.head.parameters()), "lr": head_lr, "lr0": head_lr},
        ]


def tapped(module: nn.Module) -> tuple[nn.Module, Tap]:
    """The module with a tap on its last linear layer, in order of definition."""
    linear = [
        (name, layer) for name, layer in module.named_modules() if isinstance(layer, nn.Linear)
    ]
    if not linear:
        raise MethodError(
            "the target module has no Linear layer, so its features cannot be found; end it with one."
        )
    name, layer = linear[-1]
    tap = Tap(layer)
    if not name:
        return tap, tap
    parent, _, child = name.rpartition(".")
    setattr(module.get_submodule(parent), child, tap)
    return module, tap


def build_students(how: Distillation, images: Images, classes: int, count: int) -> list[Student]:
    """Students on the same backbone; only their heads differ. The module given is copied, never trained itself."""
    module = target_module(how, classes).float().cpu().requires_grad_(True)
    seen = input_of(how, images)
    students = [Student(copy.deepcopy(module), classes, seen) for _ in range(count)]
    check(students[0], torch.from_numpy(images[np.arange(1)]))
    return students


def input_of(how: Distillation, images: Images) -> Input:
    """How the target sees the images. One that was trained keeps its own statistics: those of the images would be a
    first adaptation of it."""
    size = (how.size, how.size) if how.size else None
    if how.module is not None:
        return Input(size=size)
    if how.target in BLOCKS:
        mean, std = channel_statistics(images)
        return Input(size=size, mean=mean, std=std)
    return replace(find(how.target).input, size=size)


def target_module(how: Distillation, classes: int) -> nn.Module:
    if how.module is None and how.target not in BLOCKS:
        return find(how.target).load()
    if how.module is None:
        # channels last runs a fifth faster on a CPU; a module given may depend on its own layout
        built: nn.Module = cifar_resnet(BLOCKS[how.target], classes)
        return built.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
    try:
        module = how.module if isinstance(how.module, nn.Module) else how.module(classes)
    except Exception as error:
        raise MethodError(
            f"module is called with the number of classes, {classes}, to make a torch module, and raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(module, nn.Module):
        raise MethodError(
            f"module made {type(module).__name__}; give a torch module, or a function of the classes."
        )
    return copy.deepcopy(module)


def check(student: Student, image: Tensor) -> None:
    """Fail now, with a sentence, rather than inside the first batch."""
    with torch.no_grad():
        try:
            shape = tuple(student.eval().features(image).shape)
        except Exception as error:
            raise MethodError(f"the target module does not take these images: {error}") from error
    if shape != (1, student.size):
        raise MethodError(
            f"the target module's last Linear layer saw {shape} for one image; it must see one vector."
        )


def channel_statistics(
    images: Images, batch: int = 512
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel over all images."""
    total, square = np.zeros(3), np.zeros(3)
    for start in range(0, len(images), batch):
        pixels = images[slice(start, start + batch)].astype(np.float64)
        total += pixels.mean(axis=(2, 3)).sum(axis=0)
        square += (pixels**2).mean(axis=(2, 3)).sum(axis=0)
    mean = total / len(images)
    std = np.sqrt(
        np.maximum(square / len(images) - mean**2, 1e-8)
    )  # all images black is no reason to divide by 0
    return tuple(mean.tolist()), tuple(std.tolist())


def optimiser_of(how: Distillation, student: Student) -> torch.optim.SGD:
    groups = student.groups(how.backbone_rate, how.head_lr)
    nesterov = how.momentum > 0
    return torch.optim.SGD(
        groups, momentum=how.momentum, weight_decay=how.weight_decay, nesterov=nesterov
    )


def set_rates(optimiser: torch.optim.Optimizer, factor: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = group["lr0"] * factor


def entropy(rows: Tensor) -> Tensor:
    return -(rows * torch.log(rows + 1e-5)).sum(dim=-1)


def information_loss(logits: Tensor) -> Tensor:
    """L_IM = mean_i H(s_i) - H(mean_i s_i), minimised: sure of each image, diverse over the batch."""
    rows = logits.softmax(dim=1)
    return entropy(rows).mean() - entropy(rows.mean(dim=0))


def divergence(target: Tensor, logits: Tensor) -> Tensor:
    """KL(target || student), summed over the classes, averaged over the batch."""
    return functional.kl_div(logits.log_softmax(dim=1), target, reduction="batchmean")


def mix_up(images: Tensor, rows: Tensor, share: float, partners: Tensor) -> tuple[Tensor, Tensor]:
    """Each image blended with its partner, and its target likewise."""
    return share * images + (1 - share) * images[partners], share * rows + (1 - share) * rows[
        partners
    ]


def distil_step(
    how: Distillation,
    student: Student,
    optimiser: torch.optim.Optimizer,
    images: Tensor,
    memory: Tensor,
    chance: np.random.Generator,
) -> tuple[float, float, float]:
    """KL to the memory + L_IM + MixUp consistency with the student's own answers; returns loss, L_IM, cross-entropy.

    As in the published code, the mixed images enter the running statistics of the batch norms (its attempt to keep
    them out has no effect).
    """
    optimiser.zero_grad()
    logits = student(images)
    information = information_loss(logits)
    first = divergence(memory, logits) + information
    first.backward()  # type: ignore[no-untyped-call]
    share = float(chance.beta(how.mixup_alpha, how.mixup_alpha))
    partners = torch.from_numpy(chance.permutation(len(images)))
    mixed, targets = mix_up(images, logits.detach().softmax(dim=1), share, partners)
    second = how.mix * divergence(targets, student(mixed))
    second.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    cross_entropy = -(memory * logits.detach().log_softmax(dim=1)).sum(dim=1).mean()
    return (
        float(first.detach() + second.detach()),
        float(information.detach()),
        float(cross_entropy),
    )


def batches_of(count: int, batch: int, chance: np.random.Generator) -> list[Array]:
    """A pass in random order; a last batch of one image is left out: batch norm in training mode needs two."""
    order = chance.permutation(count)
    cut = [order[start : start + batch] for start in range(0, count, batch)]
    return [indices for indices in cut if len(indices) > 1]


def batch_count(count: int, batch: int) -> int:
    full, rest = divmod(count, batch)
    return full + (rest > 1)


def weak_batches(
    images: Images, batch: int, chance: np.random.Generator
) -> Iterator[tuple[Array, Tensor]]:
    """A pass over weak views, each batch with its indices."""
    for indices in batches_of(len(images), batch, chance):
        yield indices, weak(torch.from_numpy(images[indices]), chance)


def scores_of(students: list[Student], images: Images, batch: int = 256) -> Tensor:
    """The mean of the students' logits on the images as they are, in evaluation mode."""
    pieces = []
    for student in students:
        student.eval()
    with torch.no_grad():
        for start in range(0, len(images), batch):
            pixels = torch.from_numpy(images[slice(start, start + batch)])
            pieces.append(torch.stack([student(pixels) for student in students]).mean(dim=0))
    return torch.cat(pieces)


def answers_of(scores: Tensor) -> Array:
    rows: Array = scores.double().softmax(dim=1).numpy()
    return rows.astype(np.float32)

"""The local target network of DINE and BETA and its training, without the deployed model."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from soda_tta.box import Input
from soda_tta.box.backends.torch_module import prepared_tensor
from soda_tta.data import Images
from soda_tta.errors import MethodError
from soda_tta.methods.distillation.distillation import Distillation
from soda_tta.methods.distillation.views import weak
from soda_tta.types import Array
from soda_tta.zoo import find
from soda_tta.zoo.resnet import cifar_resnet

WIDTH = 256  # of the bottleneck
BLOCKS = {"resnet20-random": 3, "resnet32-random": 5}


class Tap(nn.Module):
    """Replaces the last linear layer and keeps its input: the features of the module."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.seen = torch.empty(0)  # the input of the last pass

    def forward(self, x: Tensor) -> Tensor:
        self.seen = x
        scores: Tensor = self.linear(x)
        return scores


class Student(nn.Module):
    """Resize, normalise, backbone, bottleneck and classifier: from images in [0, 1] to logits.

    All of `module` except its last Linear layer becomes the backbone. The bottleneck is Linear
    d x 256 with batch norm; the classifier is a weight-normalised Linear 256 x K.
    """

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
        self.size = size
        self.input = input

    def features(self, images: Tensor) -> Tensor:
        """The input of the module's last linear layer: one vector per image."""
        view = self.input.view
        if view is not None and view.size != tuple(images.shape[2:]):
            images = functional.interpolate(images, view.size, mode="bilinear", antialias=True)
        self.backbone(prepared_tensor(self.input, images))
        features = self.tap.seen
        self.tap.seen = torch.empty(0)  # keeps no graph alive
        return features

    def classify(self, features: Tensor) -> Tensor:
        """Logits from features."""
        scores: Tensor = self.head["classifier"](self.head["bottleneck"](features))
        return scores

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.features(images))

    def groups(self, backbone_lr: float, head_lr: float) -> list[dict[str, Any]]:
        """The two groups of parameters for an optimiser, each with its own learning rate."""
        trained = [weight for weight in self.backbone.parameters() if weight.requires_grad]
        return [
            {"params": trained, "lr": backbone_lr, "lr0": backbone_lr},
            {"params": list(self.head.parameters()), "lr": head_lr, "lr0": head_lr},
        ]


def tapped(module: nn.Module) -> tuple[nn.Module, Tap]:
    """The module with a tap on its last linear layer (in order of definition), and the tap."""
    linear = [
        (name, layer) for name, layer in module.named_modules() if isinstance(layer, nn.Linear)
    ]
    if not linear:
        raise MethodError(
            "the target module has no Linear layer, so its features cannot be located; "
            "end it with one."
        )
    name, layer = linear[-1]
    tap = Tap(layer)
    if not name:
        return tap, tap
    parent, _, child = name.rpartition(".")
    setattr(module.get_submodule(parent), child, tap)
    return module, tap


def build_students(how: Distillation, images: Images, classes: int, count: int) -> list[Student]:
    """`count` students with the same backbone and different heads.

    The user's module is copied and never trained itself.
    """
    module = target_module(how, classes).float().cpu().requires_grad_(True)
    expected = input_of(how, images)
    students = [Student(copy.deepcopy(module), classes, expected) for _ in range(count)]
    check(students[0], torch.from_numpy(images[np.arange(1)]))
    return students


def input_of(how: Distillation, images: Images) -> Input:
    """Size and normalisation of the target's input.

    A trained target keeps its own statistics: those of the images would already adapt it.
    """
    size = (how.size, how.size) if how.size else None
    if how.module is not None:
        return Input(size=size)
    if how.target in BLOCKS:
        mean, std = channel_statistics(images)
        return Input(size=size, mean=mean, std=std)
    return replace(find(how.target).input, size=size)


def target_module(how: Distillation, classes: int) -> nn.Module:
    """The network to start from: the user's module, one of the zoo, or one with random weights."""
    if how.module is None and how.target not in BLOCKS:
        return find(how.target).load()
    if how.module is None:
        # channels last is a fifth faster on a CPU; the user's module may depend on its own layout
        built: nn.Module = cifar_resnet(BLOCKS[how.target], classes)
        return built.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
    try:
        module = how.module if isinstance(how.module, nn.Module) else how.module(classes)
    except Exception as error:
        raise MethodError(
            f"module was called with the number of classes, {classes}, to make a torch module, "
            f"and raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(module, nn.Module):
        raise MethodError(
            f"module returned {type(module).__name__}; give a torch module, or a function from "
            "the number of classes to one."
        )
    return copy.deepcopy(module)


def check(student: Student, image: Tensor) -> None:
    """Fail now with a clear message, rather than inside the first batch."""
    with torch.no_grad():
        try:
            shape = tuple(student.eval().features(image).shape)
        except Exception as error:
            raise MethodError(f"the target module does not take these images: {error}") from error
    if shape != (1, student.size):
        raise MethodError(
            f"the target module's last Linear layer got shape {shape} for one image; it must see "
            f"one vector of {student.size} values."
        )


def channel_statistics(
    images: Images, batch: int = 512
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel over all images."""
    total = np.zeros(3)
    square = np.zeros(3)
    for start in range(0, len(images), batch):
        pixels = images[slice(start, start + batch)].astype(np.float64)
        total += pixels.mean(axis=(2, 3)).sum(axis=0)
        square += (pixels**2).mean(axis=(2, 3)).sum(axis=0)
    mean = total / len(images)
    # the lower bound avoids a division by zero if all images are black
    std = np.sqrt(np.maximum(square / len(images) - mean**2, 1e-8))
    return tuple(mean.tolist()), tuple(std.tolist())


def optimiser_of(how: Distillation, student: Student) -> torch.optim.SGD:
    """SGD with the method's momentum and weight decay."""
    groups = student.groups(how.backbone_rate, how.head_lr)
    nesterov = how.momentum > 0
    return torch.optim.SGD(
        groups, momentum=how.momentum, weight_decay=how.weight_decay, nesterov=nesterov
    )


def set_rates(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Set every group's learning rate to `factor` times its initial one."""
    for group in optimiser.param_groups:
        group["lr"] = group["lr0"] * factor


def entropy(rows: Tensor) -> Tensor:
    """The entropy along the last axis, in nats, with the released code's log(p + 1e-5)."""
    return -(rows * torch.log(rows + 1e-5)).sum(dim=-1)


def information_loss(logits: Tensor) -> Tensor:
    """L_IM = mean_i H(s_i) - H(mean_i s_i); low if confident per image, diverse over the batch."""
    rows = logits.softmax(dim=1)
    return entropy(rows).mean() - entropy(rows.mean(dim=0))


def divergence(target: Tensor, logits: Tensor) -> Tensor:
    """KL(target || student), summed over the classes, averaged over the batch."""
    return functional.kl_div(logits.log_softmax(dim=1), target, reduction="batchmean")


def mix_up(images: Tensor, rows: Tensor, share: float, partners: Tensor) -> tuple[Tensor, Tensor]:
    """Blend each image with its partner, and its target in the same way."""
    mixed_images = share * images + (1 - share) * images[partners]
    mixed_rows = share * rows + (1 - share) * rows[partners]
    return mixed_images, mixed_rows


def distil_step(
    how: Distillation,
    student: Student,
    optimiser: torch.optim.Optimizer,
    images: Tensor,
    memory: Tensor,
    random: np.random.Generator,
) -> tuple[float, float, float]:
    """One step on KL to the memory + L_IM + MixUp consistency with the student's own responses.

    `memory` holds the targets of these images. Returns loss, L_IM and cross-entropy. As in the
    published code, the mixed images enter the running statistics of the batch norms (its attempt to
    keep them out has no effect).
    """
    optimiser.zero_grad()
    logits = student(images)
    information = information_loss(logits)
    first = divergence(memory, logits) + information
    first.backward()  # type: ignore[no-untyped-call]
    share = float(random.beta(how.mixup_alpha, how.mixup_alpha))
    partners = torch.from_numpy(random.permutation(len(images)))
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


def batches_of(count: int, batch: int, random: np.random.Generator) -> list[Array]:
    """One pass in random order, without a last batch of one image: batch norm needs two."""
    order = random.permutation(count)
    batches = [order[start : start + batch] for start in range(0, count, batch)]
    return [indices for indices in batches if len(indices) > 1]


def batch_count(count: int, batch: int) -> int:
    """The number of batches of `batches_of`."""
    full, rest = divmod(count, batch)
    return full + (rest > 1)


def weak_batches(
    images: Images, batch: int, random: np.random.Generator
) -> Iterator[tuple[Array, Tensor]]:
    """One pass over weak views: each batch with its indices."""
    for indices in batches_of(len(images), batch, random):
        yield indices, weak(torch.from_numpy(images[indices]), random)


def scores_of(students: list[Student], images: Images, batch: int = 256) -> Tensor:
    """The mean of the students' logits on the original images, in evaluation mode."""
    pieces = []
    for student in students:
        student.eval()
    with torch.no_grad():
        for start in range(0, len(images), batch):
            pixels = torch.from_numpy(images[slice(start, start + batch)])
            pieces.append(torch.stack([student(pixels) for student in students]).mean(dim=0))
    return torch.cat(pieces)


def answers_of(scores: Tensor) -> Array:
    """Probabilities from logits, as float32."""
    rows: Array = scores.double().softmax(dim=1).numpy()
    return rows.astype(np.float32)

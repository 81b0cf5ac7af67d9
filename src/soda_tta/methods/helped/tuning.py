"""A copy of the helper whose normalisation layers learn from the entropy of its own answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from soda_tta.errors import MethodError
from soda_tta.methods.helped.helper import Helper

EPSILON = 1e-8
MEMORY = 0.9  # share of the mean answer that is kept at every batch
PUBLISHED_CLASSES = 1000  # the constants of the publication belong to so many classes


@dataclass(frozen=True)
class Constants:
    """What of BETA-26 depends on the number of classes."""

    entropy: float  # answers with less, in nats, are reliable
    divergence: float  # weight of the KL divergence
    norm_lr: float  # learning rate of the normalisation layers
    likeness: float  # answers with a smaller cosine to the mean answer are not redundant

    @staticmethod
    def of(
        classes: int,
        *,
        share: float,
        divergence: float,
        norm_lr: float,
        likeness: float,
        scaled: bool = True,
    ) -> Constants:
        """The constants for so many classes, from those published for 1,000.

        The largest weight of an image is `classes ** 0.9`, so the weight of the KL divergence and
        the learning rate follow it; a one-hot answer has cosine `classes ** -0.5` to an even one.

        >>> Constants.of(100, share=0.9, divergence=50, norm_lr=2e-5, likeness=0.05).likeness
        0.15811388300841897
        """
        ratio = classes / PUBLISHED_CLASSES if scaled else 1.0
        return Constants(
            entropy=share * math.log(classes if scaled else PUBLISHED_CLASSES),
            divergence=divergence * ratio**0.9,
            norm_lr=norm_lr / ratio**0.9,
            likeness=likeness / math.sqrt(ratio),
        )


class Tuning:
    """The copy, in training mode: batch norms use the statistics of each batch.

    Parameters
    ----------
    helper : stays as it is.
    constants : for its number of classes.
    momentum : of the SGD that trains weights and biases of the normalisation layers.
    """

    def __init__(self, helper: Helper, constants: Constants, momentum: float = 0.9) -> None:
        self.helper = helper.copied()
        self.constants = constants
        module = self.helper.box.module.train().requires_grad_(False)
        weights = norm_weights(module)
        self.optimiser = torch.optim.SGD(weights, lr=constants.norm_lr, momentum=momentum)
        self.mean_answer: Tensor | None = None

    def answers(self, images: Tensor) -> Tensor:
        """Probabilities of a batch, with gradients."""
        try:
            return self.helper.probabilities(images)  # type: ignore[no-any-return]
        except ValueError as error:  # a batch norm without a second value
            raise MethodError(f"the helper cannot normalise this batch: {error}") from error

    def weights_of(self, answers: Tensor) -> Tensor:
        """The weight of each image: exp(threshold - entropy), and 0 for unreliable ones."""
        entropies = entropy(answers.detach())
        weights = torch.exp(self.constants.entropy - entropies)
        return weights * (entropies < self.constants.entropy)

    def loss(self, answers: Tensor, weights: Tensor) -> Tensor:
        """The weighted entropy of reliable answers that are unlike the mean answer.

        The mean answer is remembered over batches and moves towards what was used.
        """
        used = weights > 0
        if self.mean_answer is not None:
            cosine = functional.cosine_similarity(self.mean_answer[None], answers.detach())
            used = used & (cosine.abs() < self.constants.likeness)
        if not used.any():
            return answers.sum() * 0
        mean = answers.detach()[used].mean(dim=0)
        before = mean if self.mean_answer is None else self.mean_answer
        self.mean_answer = MEMORY * before + (1 - MEMORY) * mean
        return (weights[used] * entropy(answers[used])).mean()

    def step(self, loss: Tensor) -> None:
        """One step of the normalisation layers alone."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()


def norm_weights(module: nn.Module) -> list[Tensor]:
    """Weights and biases of all normalisation layers; batch norms forget what they have seen."""
    weights: list[Tensor] = []
    for layer in module.modules():
        if not isinstance(layer, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm):
            continue
        if isinstance(layer, nn.BatchNorm2d):
            layer.track_running_stats = False
            layer.running_mean = None
            layer.running_var = None
        weights += [weight.requires_grad_(True) for weight in layer.parameters()]
    if not weights:
        raise MethodError(
            "the helper has no normalisation layer with weights, and nothing else is adapted; "
            "give another helper, or one that is not adapted (variant='f0')."
        )
    return weights


def entropy(answers: Tensor) -> Tensor:
    """The entropy of each row, in nats."""
    return -(answers * torch.log(answers + EPSILON)).sum(dim=1)


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """The mean KL divergence of the second rows from the first, in nats."""
    ratio = torch.log(first + EPSILON) - torch.log(second + EPSILON)
    return (first * ratio).sum(dim=1).mean()

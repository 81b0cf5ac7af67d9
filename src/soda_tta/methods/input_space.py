"""DA-PGD and DA-ZOO-Input: the paper's baselines that estimate the gradient at the images."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from soda_tta.adaptors import DEVIATION, Adaptor, NetworkAdaptor, PaperNetwork
from soda_tta.box import Box
from soda_tta.devices import as_array, as_tensor, working_on
from soda_tta.engine.rounding import IMAGES_CHECKED, drowned
from soda_tta.engine.step import QUERY_BYTES
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Outcome
from soda_tta.methods.tools import in_order, step_of_losses
from soda_tta.objectives import Loss, Reliable, Soda
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import SGD
from soda_tta.search.descent import Descent
from soda_tta.settings import setting
from soda_tta.types import Array


class MovableImages(Protocol):
    """Images that a gradient at themselves can move."""

    def adapted(self, indices: Array) -> Array:
        """These images as they are now."""

    def move(self, indices: Array, gradient: Array) -> None:
        """Step against a gradient by normalised pixels at the images last adapted."""

    def learned(self) -> Adaptor | None:
        """What would change other images alike; None if each has its own perturbation."""


@dataclass(frozen=True, kw_only=True)
class InputSpace(Method):
    """SODA's objective and settings; the directions of Eq. 1 are drawn at the adapted images.

    A direction moves all images of a batch at once and one loss comes back for it. With thousands
    of pixels and five directions, little of the gradient is seen. The paper does not say so, nor
    that each image has its own loss. Perturbations are in normalised pixels.
    """

    epochs: int = setting(150, "passes over all images")
    batch: int = setting(256, "images per step")
    directions: int = setting(
        5, "random directions per gradient estimate; each costs one query per image and step"
    )
    mu: float = setting(1e-3, "distance of a probe; too small drowns in rounding")
    sigma: float = setting(
        0.1, "deviation of the directions; the estimate is sigma squared times the gradient"
    )
    lr: float = setting(1e-3, "learning rate")
    tau: float = setting(0.9, "least confidence of a trusted pseudo-label")
    rho: float = setting(0.9, "share of each class that is left out, the least confident first")
    alpha: float = setting(1e-4, "weight of the cross-entropy on trusted images")
    average: bool = setting(
        False, "answer with the mean of the probabilities of the image and of the adapted image"
    )
    deviation: float = setting(
        DEVIATION, "deviation of the data's pixels: one normalised pixel, the unit of lr and mu"
    )

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise MethodError(f"{self.name} needs epochs >= 1 and batch >= 1.")
        positive = self.directions >= 1 and min(self.mu, self.sigma, self.lr) > 0
        if not (positive and 0 < self.deviation <= 1):
            raise MethodError(
                f"{self.name} needs directions (q) >= 1, mu, sigma and lr above 0, and deviation "
                "in (0, 1]."
            )
        Reliable(tau=self.tau, rho=self.rho)  # refuses impossible thresholds

    @abstractmethod
    def start(self, work: Work) -> MovableImages:
        """The images before the first step."""

    def queries(self, images: int) -> dict[str, int]:
        """What the method spends apart from the first pass, by purpose."""
        probe = images * self.epochs * (self.directions + 1)
        return {"probe": probe, "evaluate": images}

    def notices(self, work: Work) -> list[str]:
        """Whether probes would drown in rounding."""
        images = work.images[slice(0, IMAGES_CHECKED)]
        direction = self._directions(images.shape, work.seed, ())[0]

        def probe(mu: float) -> Array:
            probed = images + np.float32(self.deviation * mu) * direction
            return np.stack([images, np.clip(probed, 0, 1)])

        problem = drowned(probe, self.mu, work.meter.box)
        return [] if problem is None else [problem]

    def adapt(self, work: Work) -> Outcome:
        """Move the images, or the network, along estimated gradients."""
        count = len(work.images)
        movable = self.start(work)
        selection = Reliable(tau=self.tau, rho=self.rho)(work.before)
        objective = Soda(alpha=self.alpha)
        box = work.asking("probe")
        steps = 0
        for epoch in range(1, self.epochs + 1):
            order = generator(work.seed, RandomStream.ORDER, epoch).permutation(count)
            batches = [order[place] for place in in_order(count, self.batch)]
            for number, indices in enumerate(batches, start=1):
                steps += 1
                loss = partial(loss_of, objective, selection.of(indices))
                images = movable.adapted(indices)
                losses, gradient = self.estimate(box, images, loss, work.seed, steps)
                movable.move(indices, gradient)
                place = (epoch, number, len(batches))
                work.record(step_of_losses(place, lr=self.lr, images=len(indices), losses=losses))
        adaptor = movable.learned()
        if adaptor is not None:
            return Outcome(adaptor=adaptor, average=self.average)
        evaluate = work.asking("evaluate")
        places = in_order(count, 512)
        rows = [evaluate(movable.adapted(np.arange(count)[place])) for place in places]
        return Outcome(np.concatenate(rows), average=self.average)

    def estimate(
        self, box: Box, images: Array, loss: Callable[[Array], Loss], seed: int, step: int
    ) -> tuple[list[Loss], Array]:
        """Eq. 1 at the images: the losses of every candidate, and the gradient times sigma^2.

        The gradient is by normalised pixels. Directions are drawn twice instead of kept, piece by
        piece, so that large images need no more memory.
        """
        piece = max(1, QUERY_BYTES // ((self.directions + 1) * images[0].nbytes))
        places = list(in_order(len(images), piece))
        responses = []
        for place in places:
            part = images[place]
            directions = self._directions(part.shape, seed, (step, place.start))
            shifted = part + np.float32(self.deviation * self.mu) * directions
            candidates = np.concatenate([part[None], np.clip(shifted, 0, 1)])
            rows = box(candidates.reshape(-1, *part.shape[1:]))
            responses.append(rows.reshape(self.directions + 1, len(part), -1))
        losses = [loss(rows) for rows in np.concatenate(responses, axis=1)]
        values = np.array([each.value for each in losses])
        slopes = (values[1:] - values[0]) / (self.mu * self.directions)
        gradients = []
        for place in places:
            directions = self._directions(images[place].shape, seed, (step, place.start))
            gradients.append(np.tensordot(slopes, directions, axes=1))
        return losses, np.concatenate(gradients)

    def _directions(self, shape: tuple[int, ...], seed: int, place: tuple[int, ...]) -> Array:
        random = generator(seed, RandomStream.DIRECTIONS, *place)
        drawn = random.standard_normal((self.directions, *shape), dtype=np.float32)
        return np.float32(self.sigma) * drawn


def loss_of(objective: Soda, trusted: tuple[Array, Array], probabilities: Array) -> Loss:
    """The objective of a batch, given its labels and which of them are trusted."""
    return objective(probabilities, *trusted)


@dataclass(frozen=True, kw_only=True)
class ProjectedDescent(InputSpace):
    """DA-PGD: no network. Each image has its own perturbation, moved by sign steps in [0, 1]."""

    name: str = "da-pgd"
    summary: str = "No network: every image's own perturbation, moved by sign steps."

    def start(self, work: Work) -> MovableImages:
        """All images, without a perturbation."""
        images = work.images[slice(0, len(work.images))].copy()
        return OwnPerturbations(images, step=self.deviation * self.lr)


class OwnPerturbations:
    """Every image with its perturbation; all are in memory, because all are what is learned."""

    def __init__(self, images: Array, *, step: float) -> None:
        self.images = images
        self.step = step

    def adapted(self, indices: Array) -> Array:
        """These images as they are now."""
        return self.images[indices]

    def move(self, indices: Array, gradient: Array) -> None:
        """One sign step."""
        step = np.float32(self.step) * np.sign(gradient).astype(np.float32)
        self.images[indices] = np.clip(self.images[indices] - step, 0, 1)

    def learned(self) -> None:
        """Nothing that would change other images."""


@dataclass(frozen=True, kw_only=True)
class BackPropagatedEstimate(InputSpace):
    """DA-ZOO-Input: SODA's network; the estimate at its output is carried back by autograd."""

    name: str = "da-zoo-input"
    summary: str = "SODA's adaptor, its gradient estimated at the adapted images."
    momentum: float = setting(0.9, "share of the previous step that is kept")
    weight_decay: float = setting(1e-5, "share of the weights that is added to their gradient")
    width: int = setting(64, "channels of the network")
    activation: str = setting("hardswish", "hardswish or relu")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.network()  # refuses an impossible one

    def network(self) -> PaperNetwork:
        """The adaptor's settings."""
        return PaperNetwork(width=self.width, activation=self.activation, deviation=self.deviation)

    def start(self, work: Work) -> MovableImages:
        """The images through a network with random weights."""
        adaptor = self.network().build(work.seed)
        rule = SGD(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        return ThroughNetwork(work.images, adaptor, Descent(adaptor.parameters, rule))


class ThroughNetwork:
    """Images through one network, which a gradient at its output moves."""

    def __init__(self, images: Any, adaptor: NetworkAdaptor, search: Descent) -> None:
        self.images = images
        self.adaptor = adaptor
        self.search = search

    def adapted(self, indices: Array) -> Array:
        """These images through the network as it is now."""
        theta = self.search.theta[None]
        changed: Array = self.adaptor.candidates(self.images[indices], theta)[0]
        return changed

    def move(self, indices: Array, gradient: Array) -> None:
        """One step of the network."""
        self.search.move(self.gradient(indices, gradient))

    def learned(self) -> Adaptor:
        """The network."""
        self.adaptor.parameters = self.search.theta.astype(np.float32)
        return self.adaptor

    def gradient(self, indices: Array, at_images: Array) -> Array:
        """The gradient by theta, from one by the adapted images in normalised pixels."""
        import torch

        device = self.adaptor.device
        point = self.search.theta
        theta = torch.tensor(point, dtype=torch.float32, device=device, requires_grad=True)
        with working_on(device):
            output = self.adaptor.differentiable(as_tensor(self.images[indices], device), theta)
        slope = as_tensor(at_images / self.adaptor.deviation, device, dtype=output.dtype)
        torch.autograd.backward(output, slope)
        assert theta.grad is not None
        result: Array = as_array(theta.grad).astype(np.float64)
        return result


da_pgd = ProjectedDescent()
da_zoo_input = BackPropagatedEstimate()

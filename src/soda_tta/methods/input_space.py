"""DA-PGD and DA-ZOO-Input: the paper's baselines that estimate the gradient at the images instead of at theta."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from soda_tta.adaptors import DEVIATION, Adaptor, NetworkAdaptor, PaperNetwork
from soda_tta.box import Box
from soda_tta.engine.events import Step
from soda_tta.engine.rounding import LOOKED_AT, drowned
from soda_tta.engine.step import QUERY_BYTES
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Outcome, Work, in_order
from soda_tta.objectives.equations import Loss, Soda
from soda_tta.objectives.reliable import Reliable
from soda_tta.search import SGD
from soda_tta.search.descent import Descent
from soda_tta.types import Array

ORDER, DIRECTIONS = 1, 3  # streams of randomness, so that no two draws share a seed


class Moved(Protocol):
    """Images that a gradient at themselves can move."""

    def adapted(self, indices: Array) -> Array: ...

    def move(self, indices: Array, gradient: Array) -> None:
        """Step against a gradient by normalised pixels at the images last adapted."""

    def learned(self) -> Adaptor | None:
        """What would change other images alike; None if each has a perturbation of its own."""


@dataclass(frozen=True, kw_only=True)
class InputSpace(Method):
    """SODA's objective and settings; Eq. 1 draws its directions in the space of the adapted images.

    A direction moves all images of a batch at once and one number comes back for it: with thousands of pixels and five
    directions little of the gradient is seen. The paper does not say so, nor that each image has a loss of its own.
    Perturbations are in normalised pixels.
    """

    needs: str = "probabilities"
    epochs: int = 150
    batch: int = 256
    directions: int = 5
    mu: float = 1e-3
    sigma: float = 0.1
    lr: float = 1e-3
    tau: float = 0.9
    rho: float = 0.9
    alpha: float = 1e-4
    average: bool = False  # as in a LoopMethod
    deviation: float = DEVIATION  # one normalised pixel, in pixels of [0, 1]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (
            self.directions >= 1
            and min(self.mu, self.sigma, self.lr) > 0
            and 0 < self.deviation <= 1
        ):
            raise MethodError(
                f"{self.name} needs at least one direction (q), mu, sigma and lr above 0, and a deviation in (0, 1]."
            )
        Reliable(tau=self.tau, rho=self.rho)  # refuses impossible thresholds before the first query

    @abstractmethod
    def start(self, given: Work) -> Moved:
        """The images before the first step."""

    def queries(self, images: int) -> dict[str, int]:
        return {"probe": images * self.epochs * (self.directions + 1), "evaluate": images}

    def notices(self, given: Work) -> list[str]:
        images = given.images[slice(0, LOOKED_AT)]
        direction = self._directions(images.shape, (given.seed, DIRECTIONS))[0]

        def probe(mu: float) -> Array:
            return np.stack(
                [images, np.clip(images + np.float32(self.deviation * mu) * direction, 0, 1)]
            )

        told = drowned(probe, self.mu, given.deployed)
        return [told] if told else []

    def adapt(self, given: Work) -> Outcome:
        count, moved = len(given.images), self.start(given)
        selection, objective = (
            Reliable(tau=self.tau, rho=self.rho)(given.before),
            Soda(alpha=self.alpha),
        )
        box, steps = given.asking("probe"), 0
        for epoch in range(1, self.epochs + 1):
            order = np.random.default_rng([given.seed, ORDER, epoch]).permutation(count)
            batches = [order[place] for place in in_order(count, self.batch)]
            for number, indices in enumerate(batches, start=1):
                trust = selection.of(indices)
                seed = (given.seed, DIRECTIONS, steps := steps + 1)
                losses, gradient = self.estimate(
                    box, moved.adapted(indices), objective, trust, seed
                )
                moved.move(indices, gradient)
                values, queries = tuple(loss.value for loss in losses), len(losses) * len(indices)
                parts = losses[0].mutual_information, losses[0].cross_entropy
                given.tell(
                    Step(epoch, number, len(batches), self.lr, "probe", queries, values, *parts)
                )
        if (adaptor := moved.learned()) is not None:
            return Outcome(None, adaptor)
        final = given.asking("evaluate")
        places = in_order(count, 512)
        return Outcome(
            np.concatenate([final(moved.adapted(np.arange(count)[place])) for place in places])
        )

    def estimate(
        self,
        box: Box,
        images: Array,
        objective: Soda,
        trust: tuple[Array, Array],
        seed: tuple[int, ...],
    ) -> tuple[list[Loss], Array]:
        """Eq. 1 at the images: the losses of every candidate, and the gradient by normalised pixels (times sigma^2).

        Directions are drawn twice rather than kept, piece by piece, so that large images need no more memory.
        """
        piece = max(1, QUERY_BYTES // ((self.directions + 1) * images[0].nbytes))
        places, answers = list(in_order(len(images), piece)), []
        for place in places:
            part = images[place]
            shifted = np.clip(
                part
                + np.float32(self.deviation * self.mu)
                * self._directions(part.shape, (*seed, place.start)),
                0,
                1,
            )
            rows = box(np.concatenate([part[None], shifted]).reshape(-1, *part.shape[1:]))
            answers.append(rows.reshape(self.directions + 1, len(part), -1))
        losses = [objective(rows, *trust) for rows in np.concatenate(answers, axis=1)]
        values = np.array([loss.value for loss in losses])
        slopes = (values[1:] - values[0]) / (self.mu * self.directions)
        shapes = [(images[place].shape, (*seed, place.start)) for place in places]
        return losses, np.concatenate(
            [np.tensordot(slopes, self._directions(*each), axes=1) for each in shapes]
        )

    def _directions(self, shape: tuple[int, ...], seed: tuple[int, ...]) -> Array:
        drawn = np.random.default_rng(seed).standard_normal(
            (self.directions, *shape), dtype=np.float32
        )
        return np.float32(self.sigma) * drawn


@dataclass(frozen=True, kw_only=True)
class ProjectedDescent(InputSpace):
    """DA-PGD: no network; each image has its own perturbation, moved by sign steps and kept inside [0, 1]."""

    name: str = "da-pgd"
    summary: str = "No network: every image's own perturbation, moved by sign steps along an estimated gradient."

    def start(self, given: Work) -> Moved:
        return OwnPerturbations(
            given.images[slice(0, len(given.images))].copy(), step=self.deviation * self.lr
        )


class OwnPerturbations:
    """Every image with its perturbation; all of them are in memory, for all of them are what is learned."""

    def __init__(self, images: Array, *, step: float) -> None:
        self.images, self.step = images, step

    def adapted(self, indices: Array) -> Array:
        return self.images[indices]

    def move(self, indices: Array, gradient: Array) -> None:
        step = np.float32(self.step) * np.sign(gradient).astype(np.float32)
        self.images[indices] = np.clip(self.images[indices] - step, 0, 1)

    def learned(self) -> None:
        return None


@dataclass(frozen=True, kw_only=True)
class BackPropagatedEstimate(InputSpace):
    """DA-ZOO-Input: SODA's network; the gradient estimated at its output is carried back to theta by autograd."""

    name: str = "da-zoo-input"
    summary: str = "SODA's adaptor, its gradient estimated at the adapted images and back-propagated from there."
    momentum: float = 0.9
    weight_decay: float = 1e-5
    width: int = 64
    activation: str = "hardswish"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.network()  # refuses an impossible one before the first query

    def network(self) -> PaperNetwork:
        return PaperNetwork(width=self.width, activation=self.activation, deviation=self.deviation)

    def start(self, given: Work) -> Moved:
        adaptor = self.network().build(given.seed)
        rule = SGD(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        return ThroughNetwork(given.images, adaptor, Descent(adaptor.parameters, rule))


class ThroughNetwork:
    """Images through one network, which a gradient at its output moves."""

    def __init__(self, images: Any, adaptor: NetworkAdaptor, search: Descent) -> None:
        self.images, self.adaptor, self.search = images, adaptor, search

    def adapted(self, indices: Array) -> Array:
        changed: Array = self.adaptor.candidates(self.images[indices], self.search.theta[None])[0]
        return changed

    def move(self, indices: Array, gradient: Array) -> None:
        self.search.move(self.gradient(indices, gradient))

    def learned(self) -> Adaptor:
        self.adaptor.parameters = self.search.theta.astype(np.float32)
        return self.adaptor

    def gradient(self, indices: Array, at_images: Array) -> Array:
        """The gradient by theta of a loss whose gradient by the adapted images, in normalised pixels, is given."""
        import torch

        theta = torch.tensor(self.search.theta, dtype=torch.float32, requires_grad=True)
        output = self.adaptor.differentiable(torch.from_numpy(self.images[indices]), theta)
        torch.autograd.backward(
            output, torch.from_numpy(at_images / self.adaptor.deviation).to(output.dtype)
        )
        assert theta.grad is not None
        result: Array = theta.grad.numpy().astype(np.float64)
        return result


da_pgd, da_zoo_input = ProjectedDescent(), BackPropagatedEstimate()

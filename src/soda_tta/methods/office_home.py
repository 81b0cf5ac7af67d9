"""The paper's protocol for Office-Home: SODA with a warm-up, MixMatch, and pseudo-labels that follow the adaptor.

The paper names these parts and not their details: temperature and mixing are MixMatch's as BETA uses it (its loss on
guessed labels has weight 0 there), the average of the pseudo-labels is DINE's, renewed after every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.adaptors import DEVIATION, NetworkAdaptor, PaperNetwork
from soda_tta.box import Box
from soda_tta.engine.events import Step
from soda_tta.engine.rounding import LOOKED_AT, drowned_probes
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Outcome, Work, in_order
from soda_tta.objectives.equations import (
    LOG_EPSILON,
    Loss,
    mutual_information,
    mutual_information_slope,
)
from soda_tta.objectives.reliable import Reliable
from soda_tta.search import SGD, Backprop, BackpropSearch, MultiPoint, MultiPointSearch
from soda_tta.types import Array

ORDER, MIXING = 1, 5  # streams of randomness; a search has its own


@dataclass(frozen=True)
class Batch:
    """The images of a step; image i is shown as `share` of itself and the rest of its partner."""

    images: Array
    targets: Array  # what the mixture should be answered with
    supervised: Array  # whether that is asked of it, or only that its answer is informative
    share: Array
    partner: Array

    def mix(self, adapted: Any) -> Any:
        """The same for numpy and for PyTorch, whose gradients pass through."""
        share = self.share if isinstance(adapted, np.ndarray) else adapted.new_tensor(self.share)
        return share * adapted + (1 - share) * adapted[self.partner]


@dataclass(frozen=True, kw_only=True)
class OfficeHome(Method):
    """Warm up on every pseudo-label; then cross-entropy of mixed reliable images, mutual information of the others."""

    name: str = "soda-office-home"
    summary: str = "The paper's SODA for Office-Home: warm-up, MixMatch, pseudo-labels that follow the adaptor."
    needs: str = "probabilities"  # "gradients": true ones take the place of the estimate
    epochs: int = 60
    batch: int = 256
    warmup: int = 10  # of the epochs
    directions: int = 5
    mu: float = 1e-3
    sigma: float = 0.1
    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 1e-5
    tau: float = 0.5
    rho: float = 0.0
    agreement: float = 0.1  # weight of the cross-entropy
    information: float = 0.01  # weight of the mutual information
    memory: float = 0.6  # what a pseudo-label keeps of itself when it is renewed
    temperature: float = 0.5
    mixing: float = 1.0  # both parameters of the beta distribution a share is drawn from
    width: int = 64
    blocks: int = 0
    pairs: int = 0
    activation: str = "hardswish"
    start: float = 1.0
    deviation: float = DEVIATION
    average: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (
            0 <= self.memory <= 1 and self.temperature > 0 and self.mixing > 0 and self.warmup >= 0
        ):
            raise MethodError(
                f"{self.name} needs memory in [0, 1], temperature and mixing above 0, and warmup >= 0."
            )
        if min(self.agreement, self.information) < 0:
            raise MethodError(f"{self.name} takes no negative weight.")
        (
            self.network(),
            self.search(),
            self.descent(),
            Reliable(tau=self.tau, rho=self.rho),
        )  # refuse the impossible

    def idle(self) -> tuple[str, ...]:
        return () if self.needs == "probabilities" else ("directions", "mu", "sigma")

    def network(self) -> PaperNetwork:
        parts = ("width", "blocks", "pairs", "activation", "start", "deviation")
        return PaperNetwork(**{part: getattr(self, part) for part in parts})

    def search(self) -> MultiPoint | Backprop:
        if self.needs == "gradients":
            return Backprop()
        return MultiPoint(directions=self.directions, mu=self.mu, sigma=self.sigma)

    def descent(self) -> SGD:
        return SGD(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    def queries(self, images: int) -> dict[str, int]:
        renewals = max(0, self.epochs - max(1, self.warmup))
        return {
            "probe": images * (self.epochs * self.search().candidates + renewals),
            "evaluate": images,
        }

    def notices(self, given: Work) -> list[str]:
        adaptor, images = self.network().build(given.seed), given.images[slice(0, LOOKED_AT)]
        told = drowned_probes(self.search(), adaptor, images, given.deployed, given.seed)
        return [told] if told else []

    def adapt(self, given: Work) -> Outcome:
        adaptor, beliefs, count = self.network().build(given.seed), given.before, len(given.images)
        step = self.descent()
        search = self.search().start(adaptor.parameters, step, given.seed)
        probe = given.asking("probe")
        for epoch in range(1, self.epochs + 1):
            if epoch > max(1, self.warmup):
                beliefs = self.memory * beliefs + (1 - self.memory) * self.look(
                    given, adaptor, search.theta, probe
                )
            order = np.random.default_rng([given.seed, ORDER, epoch]).permutation(count)
            batches = [order[place] for place in in_order(count, self.batch)]
            for number, indices in enumerate(batches, start=1):
                batch = self.prepare(
                    given, beliefs, indices, warm=epoch <= self.warmup, seed=(epoch, number)
                )
                losses = self.step(batch, adaptor, search, probe)
                parts = (
                    tuple(loss.value for loss in losses),
                    losses[0].mutual_information,
                    losses[0].cross_entropy,
                )
                spent = len(losses) * len(indices)
                given.tell(Step(epoch, number, len(batches), self.lr, "probe", spent, *parts))
        adaptor.parameters = search.theta.astype(np.float32)
        return Outcome(None, adaptor)

    def look(self, given: Work, adaptor: NetworkAdaptor, theta: Array, box: Box) -> Array:
        """The model's answers to every adapted image."""
        places = in_order(len(given.images), self.batch)
        return np.concatenate(
            [box(adaptor.candidates(given.images[place], theta[None])[0]) for place in places]
        )

    def prepare(
        self, given: Work, beliefs: Array, indices: Array, warm: bool, seed: tuple[int, int]
    ) -> Batch:
        """Warm: every image with its own label. Later the reliable ones, mixed with others, with softened labels."""
        images, rows, count = given.images[indices], beliefs[indices], len(indices)
        own, alone = np.arange(count), np.ones((count, 1, 1, 1), np.float32)
        if warm:
            return Batch(
                images, np.eye(rows.shape[1])[rows.argmax(axis=1)], np.ones(count, bool), alone, own
            )
        reliable = Reliable(tau=self.tau, rho=self.rho)(beliefs).reliable[indices]
        sharp = rows.astype(np.float64) ** (1 / self.temperature)
        sharp /= sharp.sum(axis=1, keepdims=True)
        generator = np.random.default_rng([given.seed, MIXING, *seed])
        drawn = generator.beta(self.mixing, self.mixing, count)
        share = np.where(reliable, np.maximum(drawn, 1 - drawn), 1).astype(
            np.float32
        )  # more itself than the other
        partner = generator.permutation(count)
        targets = share[:, None] * sharp + (1 - share[:, None]) * sharp[partner]
        return Batch(images, targets, reliable, share.reshape(alone.shape), partner)

    def step(
        self,
        batch: Batch,
        adaptor: NetworkAdaptor,
        search: MultiPointSearch | BackpropSearch,
        box: Box,
    ) -> list[Loss]:
        """One step of the search; the losses of its candidates."""
        if isinstance(search, MultiPointSearch):
            adapted = (
                adaptor.candidates(batch.images, theta[None].astype(np.float32))[0]
                for theta in search.ask()
            )
            losses = [self.loss(box(batch.mix(images)), batch)[0] for images in adapted]
            search.tell([loss.value for loss in losses])
            return losses
        import torch

        theta = torch.tensor(search.ask()[0], dtype=torch.float32, requires_grad=True)
        rows = box.differentiable(
            batch.mix(adaptor.differentiable(torch.from_numpy(batch.images), theta))
        )
        loss, slope = self.loss(rows.detach().numpy(), batch)
        rows.backward(torch.from_numpy(slope).to(rows.dtype), inputs=[theta])
        assert theta.grad is not None
        search.tell(theta.grad.numpy())
        return [loss]

    def loss(self, rows: Array, batch: Batch) -> tuple[Loss, Array]:
        """Its value and parts, and its derivative by each probability."""
        sure, slope, exact = batch.supervised, np.zeros(rows.shape), np.asarray(rows, np.float64)
        agreement = information = 0.0
        if sure.any():
            agreement = -float(
                (batch.targets[sure] * np.log(exact[sure] + LOG_EPSILON)).sum(axis=1).mean()
            )
            slope[sure] = (
                -self.agreement * batch.targets[sure] / (exact[sure] + LOG_EPSILON) / sure.sum()
            )
        if not sure.all():
            information = mutual_information(exact[~sure])
            slope[~sure] = -self.information * mutual_information_slope(exact[~sure])
        return Loss(
            self.agreement * agreement - self.information * information, information, agreement
        ), slope


soda_office_home = OfficeHome()
soda_r_office_home = OfficeHome(
    name="soda-r-office-home",
    summary="The same with true gradients and a deeper network.",
    needs="gradients",
    blocks=2,
    pairs=2,
    activation="relu",
)

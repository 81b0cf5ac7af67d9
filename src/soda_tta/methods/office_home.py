"""The paper's protocol for Office-Home: SODA with a warm-up, MixMatch and moving pseudo-labels.

The paper names these parts but not their details. Temperature and mixing are MixMatch's as BETA
uses it (its loss on guessed labels has weight 0 there). The average of the pseudo-labels is DINE's,
renewed after every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.adaptors import DEVIATION, NetworkAdaptor, PaperNetwork
from soda_tta.box import Box
from soda_tta.devices import as_array, as_tensor, device_of, working_on
from soda_tta.engine.rounding import IMAGES_CHECKED, drowned_probes
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Outcome
from soda_tta.methods.tools import in_order, step_of_losses
from soda_tta.objectives import (
    Loss,
    Reliable,
    mutual_information,
    mutual_information_slope,
    tempered,
)
from soda_tta.objectives.equations import LOG_EPSILON
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import SGD, Backprop, MultiPoint, Search
from soda_tta.settings import setting
from soda_tta.types import Array


@dataclass(frozen=True)
class MixedBatch:
    """The images of a step: image i is shown as `share` of itself and the rest of its partner."""

    images: Array
    targets: Array  # the probabilities that the mixture should get
    supervised: Array  # whether the target is used, or only mutual information
    share: Array
    partner: Array

    def mix(self, adapted: Any) -> Any:
        """Mix adapted images; works for numpy and for PyTorch, whose gradients pass through."""
        share = self.share
        if not isinstance(adapted, np.ndarray):
            share = adapted.new_tensor(self.share)
        return share * adapted + (1 - share) * adapted[self.partner]


@dataclass(frozen=True, kw_only=True)
class OfficeHome(Method):
    """Warm up on every pseudo-label; then cross-entropy of mixed reliable images.

    The other images contribute mutual information.
    """

    name: str = "soda-office-home"
    summary: str = "The paper's SODA for Office-Home: warm-up, MixMatch, moving pseudo-labels."
    epochs: int = setting(60, "passes over all images")
    batch: int = setting(256, "images per step")
    warmup: int = setting(10, "first epochs, with cross-entropy on all pseudo-labels only")
    directions: int = setting(
        5, "random directions per gradient estimate; each costs one query per image and step"
    )
    mu: float = setting(1e-3, "distance of a probe; too small drowns in rounding")
    sigma: float = setting(
        0.1, "deviation of the directions; the estimate is sigma squared times the gradient"
    )
    lr: float = setting(1e-3, "learning rate")
    momentum: float = setting(0.9, "share of the previous step that is kept")
    weight_decay: float = setting(1e-5, "share of the weights that is added to their gradient")
    tau: float = setting(0.5, "least confidence of a trusted pseudo-label")
    rho: float = setting(0.0, "share of each class that is left out, the least confident first")
    agreement: float = setting(0.1, "weight of the cross-entropy with the pseudo-labels")
    information: float = setting(0.01, "weight of the mutual information")
    memory: float = setting(0.6, "share of a pseudo-label that is kept when it is renewed")
    temperature: float = setting(0.5, "of sharpening: a lower one makes labels more confident")
    mixing: float = setting(1.0, "both parameters of the beta distribution of the shares")
    width: int = setting(64, "channels of the network")
    blocks: int = setting(0, "residual blocks between its two convolutions")
    pairs: int = setting(0, "down- and up-sampling steps between them")
    activation: str = setting("hardswish", "hardswish or relu")
    start: float = setting(
        1.0, "factor of the last layer's random weights; 0 begins with the images as they are"
    )
    deviation: float = setting(
        DEVIATION, "deviation of the data's pixels: how far the network may move a pixel"
    )
    average: bool = setting(
        False, "answer with the mean of the probabilities of the image and of the adapted image"
    )

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.warmup < 0:
            raise MethodError(f"{self.name} needs epochs >= 1, batch >= 1 and warmup >= 0.")
        if not (0 <= self.memory <= 1 and self.temperature > 0 and self.mixing > 0):
            raise MethodError(
                f"{self.name} needs memory in [0, 1], and temperature and mixing above 0."
            )
        if min(self.agreement, self.information) < 0:
            raise MethodError(f"{self.name} needs weights that are not negative.")
        # These refuse impossible settings.
        self.network()
        self.search()
        self.descent()
        self.reliable()

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting; those of an estimate only where the gradient is estimated."""
        settings = super().settings
        if self.needs == "gradients":
            for name in ("directions", "mu", "sigma"):
                del settings[name]
        return settings

    def network(self) -> PaperNetwork:
        """The adaptor's settings."""
        parts = ("width", "blocks", "pairs", "activation", "start", "deviation")
        return PaperNetwork(**{part: getattr(self, part) for part in parts})

    def search(self) -> MultiPoint | Backprop:
        """How the parameters move."""
        if self.needs == "gradients":
            return Backprop()
        return MultiPoint(directions=self.directions, mu=self.mu, sigma=self.sigma)

    def descent(self) -> SGD:
        """How a gradient becomes a step."""
        return SGD(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    def reliable(self) -> Reliable:
        """Which pseudo-labels are trusted."""
        return Reliable(tau=self.tau, rho=self.rho)

    def queries(self, images: int) -> dict[str, int]:
        """What the method spends apart from the first pass, by purpose."""
        renewals = max(0, self.epochs - max(1, self.warmup))
        probe = images * (self.epochs * self.search().candidates + renewals)
        return {"probe": probe, "evaluate": images}

    def notices(self, work: Work) -> list[str]:
        """Whether probes of the adaptor would drown in rounding."""
        adaptor = self.network().build(work.seed)
        images = work.images[slice(0, IMAGES_CHECKED)]
        problem = drowned_probes(self.search(), adaptor, images, work.meter.box, work.seed)
        return [] if problem is None else [problem]

    def adapt(self, work: Work) -> Outcome:
        """Train the network; the engine answers with it."""
        count = len(work.images)
        adaptor = self.network().build(work.seed)
        search = self.search().start(adaptor.parameters, step=self.descent(), seed=work.seed)
        box = work.asking("probe")
        beliefs = work.before  # the pseudo-labels, as probabilities
        for epoch in range(1, self.epochs + 1):
            if epoch > max(1, self.warmup):
                renewed = self.respond(work, adaptor, search.theta, box)
                beliefs = self.memory * beliefs + (1 - self.memory) * renewed
            order = generator(work.seed, RandomStream.ORDER, epoch).permutation(count)
            batches = [order[place] for place in in_order(count, self.batch)]
            for number, indices in enumerate(batches, start=1):
                if epoch <= self.warmup:
                    batch = self.labelled(work, beliefs, indices)
                else:
                    batch = self.mixed(work, beliefs, indices, (epoch, number))
                losses = self.take_step(batch, adaptor, search, box)
                place = (epoch, number, len(batches))
                work.record(step_of_losses(place, lr=self.lr, images=len(indices), losses=losses))
        adaptor.parameters = search.theta.astype(np.float32)
        return Outcome(adaptor=adaptor, average=self.average)

    def respond(self, work: Work, adaptor: NetworkAdaptor, theta: Array, box: Box) -> Array:
        """The model's responses to every adapted image."""
        rows = []
        for place in in_order(len(work.images), self.batch):
            rows.append(box(adaptor.candidates(work.images[place], theta[None])[0]))
        return np.concatenate(rows)

    def labelled(self, work: Work, beliefs: Array, indices: Array) -> MixedBatch:
        """A batch of the warm-up: every image, unmixed, with its own label."""
        rows = beliefs[indices]
        count = len(indices)
        targets = np.eye(rows.shape[1])[rows.argmax(axis=1)]
        alone = np.ones((count, 1, 1, 1), np.float32)
        everything = np.ones(count, bool)
        return MixedBatch(work.images[indices], targets, everything, alone, np.arange(count))

    def mixed(
        self, work: Work, beliefs: Array, indices: Array, place: tuple[int, int]
    ) -> MixedBatch:
        """A later batch: reliable images, mixed with others, with sharpened labels."""
        rows = beliefs[indices]
        count = len(indices)
        reliable = self.reliable()(beliefs).reliable[indices]
        sharp = tempered(rows.astype(np.float64), 1 / self.temperature)
        random = generator(work.seed, RandomStream.MIXING, *place)
        drawn = random.beta(self.mixing, self.mixing, count)
        larger = np.maximum(drawn, 1 - drawn)  # an image stays more itself than its partner
        share = np.where(reliable, larger, 1).astype(np.float32)
        partner = random.permutation(count)
        targets = share[:, None] * sharp + (1 - share[:, None]) * sharp[partner]
        images = work.images[indices]
        return MixedBatch(images, targets, reliable, share.reshape(count, 1, 1, 1), partner)

    def take_step(
        self, batch: MixedBatch, adaptor: NetworkAdaptor, search: Search, box: Box
    ) -> list[Loss]:
        """One step of the search; the losses of its candidates."""
        points = search.ask()
        if search.wants == "losses":
            losses = []
            for theta in points.astype(np.float32):
                adapted = adaptor.candidates(batch.images, theta[None])[0]
                losses.append(self.loss(box(batch.mix(adapted)), batch)[0])
            search.tell([loss.value for loss in losses])
            return losses
        import torch

        device = device_of(box.module)
        theta = torch.tensor(points[0], dtype=torch.float32, device=device, requires_grad=True)
        with working_on(device):
            adapted = adaptor.differentiable(as_tensor(batch.images, device), theta)
            rows = box.differentiable(batch.mix(adapted))
        loss, slope = self.loss(as_array(rows), batch)
        rows.backward(as_tensor(slope, device, dtype=rows.dtype), inputs=[theta])
        assert theta.grad is not None
        search.tell(as_array(theta.grad))
        return [loss]

    def loss(self, rows: Array, batch: MixedBatch) -> tuple[Loss, Array]:
        """The loss with its parts, and its derivative by each probability."""
        supervised = batch.supervised
        exact = np.asarray(rows, np.float64)
        slope = np.zeros(rows.shape)
        agreement = 0.0
        information = 0.0
        if supervised.any():
            targets = batch.targets[supervised]
            chosen = exact[supervised] + LOG_EPSILON
            agreement = -float((targets * np.log(chosen)).sum(axis=1).mean())
            slope[supervised] = -self.agreement * targets / chosen / supervised.sum()
        if not supervised.all():
            information = mutual_information(exact[~supervised])
            slope[~supervised] = -self.information * mutual_information_slope(exact[~supervised])
        value = self.agreement * agreement - self.information * information
        return Loss(value, information, agreement), slope


soda_office_home = OfficeHome()
soda_r_office_home = OfficeHome(
    name="soda-r-office-home",
    summary="White box: the same with true gradients and a deeper network.",
    needs="gradients",
    blocks=2,
    pairs=2,
    activation="relu",
)

"""How large an experiment is, and how that changes each method's settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.methods import all_methods
from soda_tta.methods.loop_method import PAPER_STEPS

PAIR = ("gaussian_noise", "contrast")  # one noise and one tone corruption, for ablations on a desk
FIVE = ("gaussian_noise", "defocus_blur", "contrast", "pixelate", "jpeg_compression")
PAPER_EPOCHS = 150

# The learning rates of the desk scale on CIFAR. Each is the rate, among those lr=auto chooses from,
# with the least mean loss at the end of the runs of `bench run rates`; a test compares them.
# da-pl and da-direct share soda's, as in the paper.
RATES = {
    "soda": 0.03,
    "da-pl": 0.03,
    "da-direct": 0.03,
    "soda-fo": 0.003,
    "soda-o": 0.03,
    "da-zoo-input": 0.001,
}
CHOOSING = ("soda", "da-pl", "da-direct", "soda-fo")  # these methods accept lr="auto"

# Perturbations are measured in pixels normalised as the data set is. CIFAR-10's 0.2 is the default.
DEVIATIONS = {"cifar100": 0.267, "imagenet": 0.226}

# Settings of the paper that belong to a data set rather than to the method.
DATA_SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("cifar100", "soda-r"): {"beta": 0.01},
    ("cifar100", "dine"): {"batch": 256},  # a batch of 64 holds at most 64 of the 100 classes
    ("cifar100", "beta"): {"batch": 256},
    # The paper gives no beta for ImageNet, and the released script uses none.
    ("imagenet", "soda-r"): {"blocks": 1, "pairs": 1, "beta": 0.0},
}


@dataclass(frozen=True)
class Scale:
    """The size of an experiment.

    With fewer images there are fewer steps, and in so few steps the paper's learning rate hardly
    moves anything. A small scale therefore chooses the rate without labels: the desk scale on CIFAR
    once for all corruptions and ablations, the others in each run. A method that cannot choose in a
    run (a stream is not run twice) keeps lr x steps as in the paper, up to a rate of 0.1.

    Parameters
    ----------
    images : number of test images.
    epochs : epochs of a method that has 150 in the paper.
    seeds : number of seeds.
    paper_lr : whether to use the paper's own learning rate.
    sets : data sets of an ablation (default CIFAR-10).
    corruptions : corruptions of an ablation (default one noise and one tone corruption).
    desk : whether `RATES` apply (default False).
    """

    images: int
    epochs: int
    seeds: int
    paper_lr: bool
    sets: tuple[str, ...] = ("cifar10",)
    corruptions: tuple[str, ...] = PAIR
    desk: bool = False

    def settings(self, method: str, data: str = "cifar10", **more: Any) -> dict[str, Any]:
        """The settings of a method at this scale on a data set; those in `more` take precedence.

        >>> SCALES["desk"].settings("soda", "cifar100")
        {'epochs': 30, 'directions': 10, 'deviation': 0.267, 'lr': 0.03}
        """
        own = all_methods()[method].settings
        changes: dict[str, Any] = {
            stage: max(1, self.epochs * own[stage] // PAPER_EPOCHS)
            for stage in ("epochs", "finetune_epochs")
            if own.get(stage, 0) > 10  # fewer do not scale with the paper's 150
        }
        learns = bool(own.get("epochs"))
        if data == "cifar100" and learns and "directions" in own:
            changes["directions"] = 10  # "for all methods using ZOO"
        if data in DEVIATIONS and learns and "deviation" in own:
            changes["deviation"] = DEVIATIONS[data]
        if data == "imagenet" and learns and "tau" in own:
            changes["tau"] = 0.1
        if not self.paper_lr and (lr := self.rate(method, data)):
            changes["lr"] = lr
        return {**changes, **DATA_SETTINGS.get((data, method), {}), **more}

    def rate(self, method: str, data: str) -> float | str | None:
        """The learning rate at a small scale; None stands for the paper's own."""
        if self.desk and data.startswith("cifar") and method in RATES:
            return RATES[method]
        if method in CHOOSING:
            return "auto"
        ratio = self.step_ratio(method)
        if ratio is None:
            return None
        return float(f"{min(0.1, all_methods()[method].settings['lr'] * ratio):.1g}")

    def step_ratio(self, method: str) -> float | None:
        """The paper's steps divided by ours, for a method that cannot choose its rate in a run."""
        if method == "da-zoo-input":
            return PAPER_STEPS / (self.epochs * math.ceil(self.images / 256))
        if method == "da-pgd":  # an image moves once per epoch
            return PAPER_EPOCHS / self.epochs
        if method == "soda-o":
            return stream_steps(10_000) / stream_steps(self.images)
        return None


def stream_steps(images: int, arrival: int = 128, queue: int = 1000, batch: int = 256) -> int:
    """Steps that soda-o makes on a stream, with one epoch per arriving batch.

    Each epoch runs over the arriving images and the queue, as if every image was reliable enough
    to enter it.
    """
    return sum(
        math.ceil((min(arrival, images - start) + min(queue, start)) / batch)
        for start in range(0, images, arrival)
    )


SCALES = {
    "paper": Scale(10_000, 150, 3, True, ("cifar10", "cifar100"), tuple(CORRUPTIONS)),
    "desk": Scale(500, 30, 1, False, desk=True),
    "tiny": Scale(128, 3, 1, False),
}

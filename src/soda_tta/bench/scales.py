"""How large an experiment is, and what that asks of each method's settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.methods import all_methods
from soda_tta.methods.loop_method import PAPER_STEPS

PAIR = (
    "gaussian_noise",
    "contrast",
)  # where time is short, ablations are shown on one noise and one tone corruption
FIVE = ("gaussian_noise", "defocus_blur", "contrast", "pixelate", "jpeg_compression")
PAPER_EPOCHS = 150

# The rates of a desk on CIFAR: of those lr=auto chooses from, the one with the least mean loss at the end of the runs
# of `bench run rates`; a test compares. da-pl and da-direct share soda's, as in the paper.
RATES = {
    "soda": 0.03,
    "da-pl": 0.03,
    "da-direct": 0.03,
    "soda-fo": 0.003,
    "soda-o": 0.03,
    "da-zoo-input": 0.001,
}
CHOOSING = ("soda", "da-pl", "da-direct", "soda-fo")  # can be run at several rates to choose one


@dataclass(frozen=True)
class Scale:
    """Images, epochs and seeds; `sets` and `corruptions` are what an ablation runs over.

    With fewer images there are fewer steps, in which the paper's lr hardly moves anything. A small scale therefore
    chooses the lr without labels: a desk on CIFAR once for all corruptions and ablations, others in each run. Where a
    method cannot choose in a run (a stream is not run twice), it keeps lr x steps as in the paper, up to 0.1.
    """

    images: int
    epochs: int
    seeds: int
    own_lr: bool  # the paper's own lr
    sets: tuple[str, ...] = ("cifar10",)
    corruptions: tuple[str, ...] = PAIR
    desk: bool = False

    def settings(self, method: str, data: str = "cifar10", **more: Any) -> dict[str, Any]:
        """What to change in a method for this scale and this data set; `more` goes first."""
        known = all_methods()[method].settings
        changes: dict[str, Any] = {
            stage: max(1, self.epochs * known[stage] // PAPER_EPOCHS)
            for stage in ("epochs", "finetune_epochs")
            if known.get(stage, 0) > 10  # fewer are not counted in the paper's epochs
        }
        if data == "cifar100" and known.get("epochs") and "directions" in known:
            changes["q"] = 10  # "for all methods using ZOO"
        if data in DEVIATIONS and known.get("epochs") and "deviation" in known:
            changes["deviation"] = DEVIATIONS[data]
        if data == "imagenet" and known.get("epochs") and "tau" in known:
            changes["tau"] = 0.1
        if not self.own_lr and (lr := self.rate(method, data)):
            changes["lr"] = lr
        return {**changes, **OF_THE_DATA.get((data, method), {}), **more}

    def rate(self, method: str, data: str) -> float | str | None:
        """The lr at a small scale; None: the paper's own."""
        if self.desk and data.startswith("cifar") and method in RATES:
            return RATES[method]
        if method in CHOOSING:
            return "auto"
        fewer = self.fewer_steps(method)
        return (
            None
            if fewer is None
            else float(f"{min(0.1, all_methods()[method].settings['lr'] * fewer):.1g}")
        )

    def fewer_steps(self, method: str) -> float | None:
        """How many times fewer steps than in the paper are made by a method that cannot choose its lr in a run."""
        if method == "da-zoo-input":
            return PAPER_STEPS / (self.epochs * math.ceil(self.images / 256))
        if method == "da-pgd":  # an image moves once an epoch
            return PAPER_EPOCHS / self.epochs
        if method == "soda-o":
            return steps_of_a_stream(10_000) / steps_of_a_stream(self.images)
        return None


def steps_of_a_stream(images: int, arrival: int = 128, queue: int = 1000, batch: int = 256) -> int:
    """An epoch of soda-o on each batch that arrives: on it and on the queue, were every image sure enough for that."""
    arrived = range(0, images, arrival)
    return sum(
        math.ceil((min(arrival, images - start) + min(queue, start)) / batch) for start in arrived
    )


SCALES = {
    "paper": Scale(10_000, 150, 3, True, ("cifar10", "cifar100"), tuple(CORRUPTIONS)),
    "desk": Scale(500, 30, 1, False, desk=True),
    "tiny": Scale(128, 3, 1, False),
}

# Perturbations are in pixels normalised as the data set is; CIFAR-10's 0.2 is the methods' own.
DEVIATIONS = {"cifar100": 0.267, "imagenet": 0.226}

# The paper's settings that belong to a data set and not to the method.
OF_THE_DATA: dict[tuple[str, str], dict[str, Any]] = {
    ("cifar100", "soda-r"): {"beta": 0.01},
    ("cifar100", "dine"): {"batch": 256},  # of 64 images no more than 64 classes can be told apart
    ("cifar100", "beta"): {"batch": 256},
    ("imagenet", "soda-r"): {
        "blocks": 1,
        "pairs": 1,
        "beta": 0.0,
    },  # the paper names no beta, the released script none
}

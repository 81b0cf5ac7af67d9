"""BETA-26 batch by batch: both networks answer, then the border and the helper learn."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from soda_tta.devices import CPU, as_array, as_tensor
from soda_tta.engine.events import Step
from soda_tta.engine.work import Work
from soda_tta.methods.helped.frame import Frame, usual_pad
from soda_tta.methods.helped.helper import Helper
from soda_tta.methods.helped.tuning import Constants, Tuning, divergence, entropy
from soda_tta.methods.tools import in_order
from soda_tta.objectives import mutual_information
from soda_tta.randomness import RandomStream, generator
from soda_tta.types import Array

FRAMED = ("full", "f2", "framed")  # the model sees the image inside the border
WITHOUT_MODEL = ("helper", "helper-adapted")
UNTRAINED = ("helper", "f0")


class Settings(Protocol):
    """What a run needs to know of its method."""

    @property
    def variant(self) -> str: ...
    @property
    def alpha(self) -> float: ...
    @property
    def batch(self) -> int: ...
    @property
    def pad(self) -> int: ...
    @property
    def lr(self) -> float: ...

    def found_helper(self) -> Helper:
        """The helper itself."""

    def constants(self, classes: int) -> Constants:
        """The constants for so many classes."""


class Beta26Run:
    """One pass over the images of a run.

    Parameters
    ----------
    method : the settings.
    work : the run.
    """

    def __init__(self, method: Settings, work: Work) -> None:
        self.method = method
        self.work = work
        self.helper = method.found_helper()
        self.box = work.asking("evaluate")
        first = work.images[slice(0, 1)]
        self.classes = self.helper.answers(first).shape[1]
        if method.variant in WITHOUT_MODEL:
            work.expect(self.classes)
        self.frame: Frame | None = None
        if method.variant in FRAMED:
            random = generator(work.seed, RandomStream.BORDER)
            pad = method.pad or usual_pad(work.images.size)
            self.frame = Frame(work.images.size, pad, random)
            border = [self.frame.border]
            self.optimiser = torch.optim.AdamW(border, lr=method.lr)
        self.tuning: Tuning | None = None
        if method.variant not in UNTRAINED:
            self.tuning = Tuning(self.helper, method.constants(self.classes))

    def answers(self) -> Array:
        """The answers to all images; each is given before its own batch teaches anything."""
        rows = []
        places = list(batches(len(self.work.images), self.method.batch))
        for number, place in enumerate(places, start=1):
            answer, loss = self.batch(place)
            rows.append(answer)
            sent = 0 if self.method.variant in WITHOUT_MODEL else len(answer)
            self.work.record(
                Step(
                    epoch=1,
                    step=number,
                    of=len(places),
                    lr=self.method.lr,
                    purpose="evaluate",
                    queries=sent,
                    losses=(loss,),
                    mutual_information=mutual_information(answer),
                    cross_entropy=0.0,
                )
            )
        return np.concatenate(rows)

    def batch(self, place: slice) -> tuple[Array, float]:
        """Answer a batch, then learn from it; the answers and the loss."""
        images = self.work.images[place]
        if self.tuning is None:
            own = self.helper.answers(images)
            answer = own
            if self.method.variant == "f0":
                answer = self.fused(own, self.asked(place, images))
            return answer, float(entropy(torch.from_numpy(own)).mean())
        if self.frame is None:
            return self.tuned_batch(self.tuning, place, images)
        return self.framed_batch(self.tuning, self.frame, place, images)

    def tuned_batch(self, tuning: Tuning, place: slice, images: Array) -> tuple[Array, float]:
        """Without the border: the helper's normalisation layers learn from its own answers."""
        own = tuning.answers(as_tensor(images, CPU))
        loss = tuning.loss(own, tuning.weights_of(own))
        answer = as_array(own)
        if self.method.variant == "f1":
            answer = self.fused(answer, self.asked(place, images))
        tuning.step(loss)
        return answer, float(loss.detach())

    def framed_batch(
        self, tuning: Tuning, frame: Frame, place: slice, images: Array
    ) -> tuple[Array, float]:
        """The whole method, or the same with its first border (f2)."""
        pixels = as_tensor(images, CPU)
        framed = frame(pixels)
        plain = tuning.answers(pixels)
        prompted = tuning.answers(framed)
        response = self.asked(None, as_array(framed))
        fused = self.method.alpha * prompted + (1 - self.method.alpha) * as_tensor(response, CPU)
        weights = tuning.weights_of(plain)
        reliable = weights > 0
        loss = tuning.constants.divergence * divergence(plain, prompted)
        loss = loss + tuning.loss(plain, weights)
        if reliable.any():
            loss = loss + (weights[reliable] * entropy(fused[reliable])).mean()
            self.learn(tuning, frame, loss)
        answer = response if self.method.variant == "framed" else as_array(fused)
        return answer, float(loss.detach())

    def learn(self, tuning: Tuning, frame: Frame, loss: Tensor) -> None:
        """One step of the helper's normalisation layers and, except in f2, of the border."""
        self.optimiser.zero_grad()
        tuning.step(loss)
        if self.method.variant != "f2":
            self.optimiser.step()
            frame.keep_in_range()

    def asked(self, place: slice | None, images: Array) -> Array:
        """The model's answers; with a place, of images as they are."""
        rows = self.box(images)
        self.work.expect(rows.shape[1])
        if rows.shape[1] != self.classes:
            self.helper.check(images, rows.shape[1])
        if place is not None:
            self.work.before[place] = rows
        return rows

    def fused(self, own: Array, response: Array) -> Array:
        """The weighted mean of the helper's and the model's answers."""
        alpha = self.method.alpha
        return (alpha * own + (1 - alpha) * response).astype(np.float32)


def batches(count: int, batch: int) -> list[slice]:
    """Slices in order; a last batch of one image joins the one before: batch norm needs two.

    >>> batches(9, 4)
    [slice(0, 4, None), slice(4, 9, None)]
    """
    places = list(in_order(count, batch))
    if len(places) > 1 and batch > 1 and places[-1].stop - places[-1].start == 1:
        last = places.pop()
        places[-1] = slice(places[-1].start, last.stop)
    return places

"""A box: images in, class probabilities out, nothing else to be seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from soda_tta.box.facts import Input, check_images
from soda_tta.errors import BoxError
from soda_tta.types import Array

PARTIAL_EXCESS = 0.05  # rounding to two digits may also add up to more than 1
ROW_SUM_TOLERANCE = 1e-2  # half-precision models and services that print three digits stay inside


class Box(ABC):
    """A deployed classifier seen from outside: `box(images) -> probabilities`.

    Images are float32 NCHW RGB in [0, 1]; a box does its own normalising, resizing and batching.
    """

    input: Input = Input()
    says: Mapping[str, Any] = MappingProxyType(
        {}
    )  # facts of its input that the model itself declares
    logits: bool = False
    partial: bool = (
        False  # rows may sum to less than 1: only the top classes come back, or rounded numbers
    )
    batch: int = 64  # images a request; a box splits what it is given
    fixed_batch: bool = (
        False  # a model that takes exactly `batch` images gets the last one repeated
    )
    classes: int | None = None  # known after the first answer

    def __call__(self, images: Array) -> Array:
        """The class probabilities of each image, one row an image."""
        images = check_images(images)
        if not len(images):
            return np.zeros((0, self.classes or 0), np.float32)
        starts = range(0, len(images), self.batch)
        return np.concatenate(
            [self._checked(images[start : start + self.batch]) for start in starts]
        )

    @abstractmethod
    def answer(self, images: Array) -> Array:
        """What the model returns for one request, unchecked."""

    def fingerprint(self) -> str:
        """What tells this model from another one on a protocol card."""
        return repr(self)

    def card(self) -> dict[str, Any]:
        """Everything that decides what it answers."""
        told = {"input": self.input.card(), "logits": self.logits, "partial": self.partial}
        return {"fingerprint": self.fingerprint(), **told}

    @property
    def at_once(self) -> int:
        """How many images are under way at a time: a failure loses the answers to no more."""
        return self.batch

    @property
    def module(self) -> Any:
        """The PyTorch module inside, for methods that need gradients."""
        raise self._opaque()

    def differentiable(self, images: Any) -> Any:
        """Probabilities of a tensor of images, with gradients; only a PyTorch module can."""
        raise self._opaque()

    def _opaque(self) -> BoxError:
        return BoxError(
            f"{self!r} shows only probabilities; methods that need gradients or weights take a PyTorch module."
        )

    def give_up(self, now: bool) -> None:  # noqa: B027 - most have nothing to give up
        """While `now` holds, what waits to be asked again is not: nobody will look at the answer."""

    def seen(self, images: Array) -> Array:
        """The images as they arrive at the model, on whatever way they take to it."""
        if self.input.quantum is None:
            return images
        levels = np.float32(1 / self.input.quantum)
        return (np.rint(images * levels) / levels).astype(np.float32)

    @property
    def quantum(self) -> float | None:
        """The smallest step of a pixel that survives the way to the model; None if there is no rounding."""
        return self.input.quantum

    def _checked(self, images: Array) -> Array:
        asked = images
        if self.fixed_batch and len(images) < self.batch:
            asked = np.concatenate(
                [images, np.repeat(images[-1:], self.batch - len(images), axis=0)]
            )
        output = check_probabilities(
            self.answer(asked), len(asked), self.classes, self.logits, self.partial
        )
        self.classes = output.shape[1]
        return output[: len(images)]


class Wrapper(Box):
    """A box around a box: does one thing and otherwise is what it wraps."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.input, self.logits, self.batch = box.input, box.logits, box.batch
        self.partial, self.says = box.partial, box.says

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        return self.box.classes

    def __call__(self, images: Array) -> Array:
        return self.box(images)

    def seen(self, images: Array) -> Array:
        return self.box.seen(images)

    def give_up(self, now: bool) -> None:
        self.box.give_up(now)

    def answer(self, images: Array) -> Array:
        return self(images)  # never past what a wrapper does: no answer is unmetered

    def fingerprint(self) -> str:
        return self.box.fingerprint()

    @property
    def at_once(self) -> int:
        return self.box.at_once

    @property
    def module(self) -> Any:
        return self.box.module

    def differentiable(self, images: Any) -> Any:
        return self.box.differentiable(images)

    @property
    def quantum(self) -> float | None:
        return self.box.quantum

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.box!r})"


def check_probabilities(
    output: Any, rows: int, classes: int | None, logits: bool, partial: bool = False
) -> Array:
    """The answer as (rows, classes) float32 probabilities, or a sentence that says what came back instead."""
    output = np.asarray(output)
    if output.dtype.kind not in "fiu":
        raise BoxError(
            f"the model returned {output.dtype} values; probabilities are numbers. Choose its output by name."
        )
    if output.ndim > 2 and all(extent == 1 for extent in output.shape[2:]):
        output = output.reshape(output.shape[:2])
    if output.ndim != 2:
        raise BoxError(
            f"the model returned an array of shape {output.shape} for {rows} images; expected ({rows}, classes). "
            "Choose its output by name, or wrap it in a function that returns one row an image."
        )
    if len(output) != rows:
        raise BoxError(
            f"the model returned {len(output)} rows for {rows} images; it must answer every image once."
        )
    if classes is not None and output.shape[1] != classes:
        raise BoxError(
            f"the model returned {output.shape[1]} classes where it returned {classes} before."
        )
    if output.shape[1] < 2:
        raise BoxError(
            f"the model returned {output.shape[1]} class; a classifier has at least two."
        )
    with np.errstate(over="ignore"):  # what does not fit is infinite, and refused below
        output = output.astype(np.float32, copy=False)
    if not np.isfinite(output).all():
        row = int(np.flatnonzero(~np.isfinite(output).all(axis=1))[0])
        raise BoxError(
            f"the model returned NaN or infinity (first in row {row}); "
            "check its normalisation (--mean, --std, --pixel-range)."
        )
    if logits:
        return softmax(output)
    sums = output.sum(axis=1, dtype=np.float64)
    if partial and output.min() >= 0 and sums.max() <= 1 + PARTIAL_EXCESS:
        return completed(output)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE or output.min() < -1e-6:
        found = (
            f"sum to {sums[worst]:.4g}"
            if output.min() >= -1e-6
            else f"hold negative numbers ({output.min():.4g})"
        )
        remedy = "if these are logits, pass --logits (or logits=True)"
        if output.min() >= 0 and sums[worst] < 1 + PARTIAL_EXCESS:
            remedy += "; if only the top classes or rounded numbers come back, pass --partial (or partial=True)"
        raise BoxError(f"the model returned rows that {found}; {remedy}.")
    clipped: Array = np.clip(output, 0, 1)
    return clipped


def completed(rows: Array) -> Array:
    """Rows that sum to 1: what is missing is shared by the classes that were not given.

    >>> completed(np.array([[0.5, 0.3, 0.0, 0.0]], np.float32)).round(3)
    array([[0.5, 0.3, 0.1, 0.1]], dtype=float32)
    """
    absent = rows == 0
    missing = np.clip(1 - rows.sum(axis=1, keepdims=True), 0, None)
    shared = rows + absent * missing / np.maximum(absent.sum(axis=1, keepdims=True), 1)
    result: Array = (shared / shared.sum(axis=1, keepdims=True)).astype(np.float32)
    return result


def softmax(logits: Array) -> Array:
    exponents: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    exponents /= exponents.sum(axis=1, keepdims=True)
    return exponents

"""A box: images in, class probabilities out, and nothing else visible."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from soda_tta.box.facts import OUTPUT_FACTS
from soda_tta.box.input import Input, check_images
from soda_tta.box.price import Price
from soda_tta.box.probabilities import check_probabilities, without_background
from soda_tta.errors import BoxError
from soda_tta.plain_json import plain_json
from soda_tta.types import Array

if TYPE_CHECKING:
    from soda_tta.box.ledger import Ledger

# Receives the rows of one request: the number of its piece, and its place in the piece.
Received = Callable[[int, slice, Array], None]
Waiting = Callable[[float, str], None]  # receives the seconds before a request, and the reason
Responded = Callable[[str, int], None]  # receives the purpose and the queries of a response


def not_kept(number: int, place: slice, rows: Array) -> None:
    """Ignore rows: the caller gets them anyway."""


def not_shown(seconds: float, reason: str) -> None:
    """Ignore a wait."""


def not_counted(purpose: str, queries: int) -> None:
    """Ignore a response."""


class Box(ABC):
    """A deployed classifier seen from outside: `box(images) -> probabilities`.

    Images are float32 NCHW RGB in [0, 1]. A box does its own normalisation, resizing and
    batching. A subclass implements `answer`; see `soda_tta.box.backends`.

    Attributes
    ----------
    input : Input
        The images the model expects.
    declared : mapping
        Facts about its input and output that the model itself declares, by name.
    logits : bool, default False
        The model returns logits instead of probabilities.
    partial : bool, default False
        Rows may sum to less than 1: the model returns only the top classes, or rounded values.
    background : bool, default False
        Class 0 of the model is the background, which is left out.
    batch : int, default 64
        Images per request. A longer call is split.
    fixed_batch : bool, default False
        The model takes exactly `batch` images. A shorter request is filled up with copies of the
        last image.
    classes : int or None
        Number of classes; known after the first response.
    class_names : tuple of str or None
        Names of the classes, if the model declares them.
    price : Price or None
        What the model charges, if its description states it.

    Examples
    --------
    >>> class Halves(Box):
    ...     def answer(self, images):
    ...         return np.full((len(images), 2), 0.5)
    >>> Halves()(np.zeros((3, 3, 8, 8), np.float32)).shape
    (3, 2)
    """

    input: Input = Input()
    declared: Mapping[str, Any] = MappingProxyType({})
    logits: bool = False
    partial: bool = False
    background: bool = False
    batch: int = 64
    fixed_batch: bool = False
    classes: int | None = None
    class_names: tuple[str, ...] | None = None
    price: Price | None = None

    def __call__(self, images: Array) -> Array:
        """The class probabilities of each image, one row per image.

        Parameters
        ----------
        images : array of shape (n, 3, height, width)
            float32 RGB in [0, 1].
        """
        images = check_images(images)
        if not len(images):
            return np.zeros((0, self.classes or 0), np.float32)
        starts = range(0, len(images), self.batch)
        return np.concatenate(
            [self._probabilities(images[start : start + self.batch]) for start in starts]
        )

    def each(self, pieces: Iterable[Array], received: Received = not_kept) -> Iterator[Array]:
        """The probabilities of several pieces of images, in order, as one query.

        A box that sends several requests at once takes the next piece while it waits, so that the
        caller's generator prepares it meanwhile.

        Parameters
        ----------
        pieces : iterable of arrays
            Images, as `box(images)` takes them.
        received : callable, optional
            Called with the rows of each request as soon as they are there, from any thread.
        """
        for number, piece in enumerate(pieces):
            rows = self(piece)
            received(number, slice(0, len(rows)), rows)
            yield rows

    @abstractmethod
    def answer(self, images: Array) -> Array:
        """What the model returns for one request of at most `batch` images, unchecked."""

    def fingerprint(self) -> str:
        """A text that differs between two models, for the protocol card."""
        return repr(self)

    def restated(self, **facts: Any) -> Box:
        """The same model with other facts of `box/facts.py`, by name; nothing is loaded again."""
        same = copy(self)
        stated = {name: value for name, value in facts.items() if name not in OUTPUT_FACTS}
        same.input = replace(self.input, **stated)
        for name in OUTPUT_FACTS.keys() & facts.keys():
            setattr(same, name, facts[name])
        if same.background != self.background:
            same.classes = None  # not known yet
        return same

    def card(self) -> dict[str, Any]:
        """Everything that determines the responses, as plain JSON."""
        output = {name: getattr(self, name) for name in OUTPUT_FACTS}
        facts = {"fingerprint": self.fingerprint(), "input": self.input.card(), **output}
        return dict(plain_json(facts))

    def requests(self, count: int) -> int:
        """The requests that one call about so many images is sent in."""
        return math.ceil(count / self.batch)

    @property
    def at_once(self) -> int:
        """The largest number of images in flight: a failure loses no more responses than this."""
        return self.batch

    @property
    def module(self) -> Any:
        """The PyTorch module inside, for methods that need gradients."""
        raise self._opaque()

    def differentiable(self, images: Any) -> Any:
        """Probabilities of a tensor of images, with gradients; only for a PyTorch module."""
        raise self._opaque()

    def _opaque(self) -> BoxError:
        return BoxError(
            f"{self!r} shows only probabilities; "
            "methods that need gradients or weights take a PyTorch module."
        )

    def give_up(self, now: bool) -> None:  # noqa: B027 - only a box that retries has to do anything
        """While `now` is True, do not retry: the caller no longer needs the response."""

    def charging(self, ledger: Ledger) -> Box:
        """The same box with queries that it sends on its own (hedges) counted in this ledger."""
        return self

    def around_attempts(self, wrap: Callable[[Box], Box], waiting: Waiting = not_shown) -> Box:
        """The same box with a wrapper around each attempt to send a request.

        Parameters
        ----------
        wrap : callable
            Wraps the box inside all others.
        waiting : callable, optional
            Receives the waits before retries, and those for a limit.
        """
        return wrap(self)

    def as_received(self, images: Array) -> Array:
        """The images as they arrive at the model, with the rounding on the way there."""
        if self.input.quantum is None:
            return images
        levels = np.float32(1 / self.input.quantum)
        return (np.rint(images * levels) / levels).astype(np.float32)

    @property
    def quantum(self) -> float | None:
        """The smallest pixel step that reaches the model; None if pixels are not rounded."""
        return self.input.quantum

    def _probabilities(self, images: Array) -> Array:
        """Send one request and check the response."""
        request = images
        if self.fixed_batch and len(images) < self.batch:
            copies = np.repeat(images[-1:], self.batch - len(images), axis=0)
            request = np.concatenate([images, copies])
        expected = None if self.classes is None else self.classes + self.background
        probabilities = check_probabilities(
            self.answer(request), len(request), expected, self.logits, self.partial
        )
        if self.background:
            probabilities = without_background(probabilities)
        self.classes = probabilities.shape[1]
        return probabilities[: len(images)]


class Wrapper(Box):
    """A box around a box: it does one thing and otherwise behaves like the box inside.

    Parameters
    ----------
    box : Box
        The box to wrap.
    """

    def __init__(self, box: Box) -> None:
        self.box = box
        self.input = box.input
        self.declared = box.declared
        self.batch = box.batch
        self.fixed_batch = box.fixed_batch
        self.class_names = box.class_names
        self.price = box.price
        for name in OUTPUT_FACTS:
            setattr(self, name, getattr(box, name))

    @property
    def classes(self) -> int | None:  # type: ignore[override]
        return self.box.classes

    def __call__(self, images: Array) -> Array:
        return self.box(images)

    def as_received(self, images: Array) -> Array:
        return self.box.as_received(images)

    def restated(self, **facts: Any) -> Box:
        same = copy(self)
        same.box = self.box.restated(**facts)
        same.input = same.box.input
        for name in OUTPUT_FACTS:
            setattr(same, name, getattr(same.box, name))
        return same

    def give_up(self, now: bool) -> None:
        self.box.give_up(now)

    def charging(self, ledger: Ledger) -> Box:
        same = copy(self)
        same.box = self.box.charging(ledger)
        return same

    def around_attempts(self, wrap: Callable[[Box], Box], waiting: Waiting = not_shown) -> Box:
        same = copy(self)
        same.box = self.box.around_attempts(wrap, waiting)
        return same

    def answer(self, images: Array) -> Array:
        return self(images)  # through the wrapper, so that no query is left uncounted

    def fingerprint(self) -> str:
        return self.box.fingerprint()

    def requests(self, count: int) -> int:
        return self.box.requests(count)

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

"""`Stream`: adapt to images while they arrive. Each batch is answered once, in order."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from soda_tta._version import __version__
from soda_tta.adaptors import Adaptor
from soda_tta.box import Meter, load_box
from soda_tta.data import open_images
from soda_tta.engine.events import Step
from soda_tta.engine.live import LiveStream
from soda_tta.engine.loop import Training
from soda_tta.engine.plan import query_limit
from soda_tta.engine.rounding import drowned_probes
from soda_tta.engine.step import Task
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import BudgetError, ImageError, MethodError, RunError
from soda_tta.methods.registry import all_methods, find_method
from soda_tta.objectives import Queue, Selection
from soda_tta.randomness import RandomStream, generator
from soda_tta.storage.stream_file import (
    FORMAT,
    check_same_model,
    read_stream_file,
    write_stream_file,
)
from soda_tta.types import Array

LIVE = "soda-e"  # the method that answers first and learns afterwards
QUEUED = ("images", "labels", "confidences")


class StreamMethod(Protocol):
    """What a stream needs from its method: the inner loop method and the size of the queue."""

    name: str
    inner: Any
    queue: int
    settings: dict[str, Any]


class Stream:
    """Answer batches of images as they come, and learn from each before answering it.

    Parameters
    ----------
    box : the deployed model: whatever `load_box` takes.
    method : the name of a method for streams, or such a method.
    seed : everything random follows from it.
    budget : the most queries per image that has arrived, all purposes together. What one batch does
        not use, the next may. With too little, a stream learns less and still answers.
    listener : receives every step.
    meter : the metered model, where a run lends its own.
    settings : changes to the method's settings.

    If the model fails, theta and the queue stay as they were; the queries stay billed and the
    images count as arrived.

    Examples
    --------
    >>> def model(images):
    ...     return np.full((len(images), 4), 0.25)
    >>> stream = Stream(model, epochs=1, q=1, width=2)
    >>> stream(np.zeros((5, 3, 8, 8), np.float32)).shape, stream.ledger
    ((5, 4), Ledger(20 queries: select 5, probe 10, evaluate 5))
    """

    def __new__(cls, box: Any, *, method: Any = "soda-o", **settings: Any) -> Any:
        """A `LiveStream` for soda-e, which answers first and learns afterwards."""
        if learns_behind(method):
            return LiveStream(box, method=method, **settings)
        return super().__new__(cls)

    def __init__(
        self,
        box: Any,
        *,
        method: Any = "soda-o",
        seed: int = 0,
        budget: float | None = None,
        listener: Callable[[Step], None] | None = None,
        meter: Meter | None = None,
        **settings: Any,
    ) -> None:
        if budget is not None and not 1 <= budget < math.inf:
            raise BudgetError(
                f"a budget of {budget:g} queries per image is not valid; give at least 1."
            )
        if seed < 0:
            raise MethodError(f"seed is {seed}; give 0 or more.")
        self.meter = meter or Meter(load_box(box))
        self.method = find_stream_method(method, settings)
        inner = self.method.inner
        if inner.needs != "probabilities":
            _ = self.meter.box.module  # refuses a box that shows only probabilities
        self.seed = seed
        self.budget = budget
        self.listener = listener
        self.adaptor: Adaptor = inner.adaptor.build(seed)
        self.search = inner.start(self.adaptor, seed)
        self.queue = Queue(self.method.queue)
        self.images = 0  # arrived so far
        self.batches = 0
        self.prepaid = 0  # first responses in the ledger to images that have not arrived

    @property
    def ledger(self) -> Any:
        """The queries spent so far."""
        return self.meter.ledger

    def __call__(self, images: Any) -> Array:
        """The probabilities of the next batch, in order: an array, or anything `adapt` takes."""
        source = at_working_size(open_images(images), self.meter.box.input.view)
        arrived = source[slice(0, len(source))]
        if not self.images:
            search = self.method.inner.search
            box = self.meter.box
            problem = drowned_probes(search, self.adaptor, arrived, box, self.seed)
            if problem is not None:
                warnings.warn(problem, stacklevel=2)
        return self.answer(arrived)

    def answer(self, images: Array, before: Array | None = None) -> Array:
        """The same; `before` are the model's responses to these images, if they are known."""
        if len(self.queue) and images.shape[1:] != self.queue.images.shape[1:]:
            expected = size_text(self.queue.images)
            raise ImageError(
                f"these images are {size_text(images)}, those of this stream were {expected}; "
                "resize them."
            )
        self.images += len(images)
        if self.budget is not None:
            limit = query_limit(self.budget, self.images) + self.prepaid
            self.meter.set_limit(limit)
        state = self.search.state()
        queue = self.queue
        try:
            answers = self._answer(images, before)
        except BaseException:
            self.search.restore(state)
            self.queue = queue
            raise
        self.batches += 1
        return answers

    def _answer(self, images: Array, before: Array | None) -> Array:
        count = len(images)
        left = self.meter.left
        if before is None:
            if self.search.count and left is not None and left < 2 * count:
                # Only one query per image is affordable: the adaptor so far answers better.
                return self._adapted(images)
            before = self.meter.asking("select")(images)
        self.queue = self.queue.push(images, before, self.method.inner.reliable.tau)
        self._learn(images, before)
        left = self.meter.left
        if not self.search.count or (left is not None and left < count):
            return before  # an untrained network only adds noise
        return self._adapted(images)

    def _learn(self, images: Array, before: Array) -> None:
        """Mutual information of the images outside the queue, cross-entropy of those in it."""
        inner = self.method.inner
        outside = ~self.queue.taken
        union = np.concatenate([images[outside], self.queue.images])
        selection = Selection(
            np.concatenate([before[outside].argmax(axis=1), self.queue.labels]),
            np.arange(len(union)) >= outside.sum(),
        )
        random = generator(self.seed, RandomStream.ARRIVAL, self.batches)
        task = Task(
            images=open_images(union),
            meter=self.meter,
            selection=selection,
            objective=inner.objective,
            batch=inner.batch,
            seed=int(random.integers(2**63 - 1)),
            reserve=len(images),
        )
        training = Training(task, self.adaptor, self.search, inner.search.candidates)
        try:
            for step in training.advance(inner.epochs, "probe"):
                if self.listener is not None:
                    epoch = self.batches * inner.epochs + step.epoch
                    self.listener(replace(step, epoch=epoch))
        except BudgetError:
            if not self.meter.has_lost_queries:
                raise
            # Lost requests of this step used up its budget: the stream continues without it.

    def _adapted(self, images: Array) -> Array:
        self.adaptor.parameters = self.search.theta.astype(np.float32)
        return self.meter.asking("evaluate")(self.adaptor(images))

    def __repr__(self) -> str:
        return (
            f"Stream({self.meter.box!r}, method={self.method.name!r}, seed={self.seed}, "
            f"budget={self.budget})"
        )

    def save(self, path: str | Path) -> None:
        """Write everything that the next batch depends on to one safetensors file, atomically."""
        arrays = {f"search.{name}": array for name, array in self.search.state().items()}
        arrays |= {f"queue.{name}": getattr(self.queue, name) for name in QUEUED}
        facts = {
            "format": FORMAT,
            "soda_tta": __version__,
            "method": self.method.name,
            "settings": self.method.settings,
            "seed": self.seed,
            "budget": self.budget,
            "box": self.meter.box.card(),
            "images": self.images,
            "batches": self.batches,
            "queries": self.ledger.queries,
        }
        write_stream_file(Path(path), arrays, facts)

    @staticmethod
    def load(path: str | Path, box: Any, *, method: Any = "soda-o", **options: Any) -> Any:
        """Continue a saved stream, bit for bit, in front of the same model.

        Parameters
        ----------
        path : a file that `save` wrote; nothing in it is executed.
        box : the same model.
        method : the method of the saved stream.
        options : of `LiveStream.load`, for soda-e: directory and listener.
        """
        if learns_behind(method):
            return LiveStream.load(path, box, **options)
        if options:
            raise MethodError(f"{', '.join(options)} is for a stream of soda-e; leave it out.")
        arrays, facts = read_stream_file(Path(path))
        deployed = load_box(box)
        base = find_stream_method(method, {})
        if facts["method"] != base.name:
            raise RunError(f"{path} holds a stream of {facts['method']!r}, not of {base.name!r}.")
        check_same_model(path, facts["box"], deployed.card())
        try:
            stream = Stream(
                deployed,
                method=base,
                seed=facts["seed"],
                budget=facts["budget"],
                **facts["settings"],
            )
            stream._restore(arrays, facts)
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path} holds a stream that cannot be continued: {error}") from error
        return stream

    def _restore(self, arrays: dict[str, Array], facts: dict[str, Any]) -> None:
        prefix = "search."
        state = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        expected = {name: array.size for name, array in self.search.state().items()}
        if {name: array.size for name, array in state.items()} != expected:
            raise ValueError("its vectors do not fit its settings.")
        self.search.restore(state)
        images, labels, confidences = (arrays[f"queue.{name}"] for name in QUEUED)
        if not len(images) == len(labels) == len(confidences) <= self.method.queue:
            raise ValueError("its queue is incomplete.")
        self.queue = Queue(self.method.queue, images, labels, confidences)
        self.images = int(facts["images"])
        self.batches = int(facts["batches"])
        for purpose, count in facts["queries"].items():
            self.meter.recover(int(count), purpose)


def learns_behind(method: Any) -> bool:
    """Whether a method answers first and learns afterwards: a `LiveStream` does that."""
    return bool(getattr(method, "name", method) == LIVE)


def find_stream_method(method: Any, settings: dict[str, Any]) -> Any:
    """A method for streams, with changed settings."""
    found = find_method(method)
    if not found.streams:
        names = [LIVE, *(name for name, each in all_methods().items() if each.streams)]
        raise MethodError(
            f"{found.name!r} is not a method for a stream; choose {' or '.join(names)}."
        )
    return found.but(**settings)


def size_text(images: Array) -> str:
    """Width and height of a batch, for people."""
    return f"{images.shape[3]}x{images.shape[2]}"

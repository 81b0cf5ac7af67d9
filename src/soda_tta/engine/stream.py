"""`Stream`: adapt to images while they arrive. Each batch is answered once, in order, and then forgotten."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from soda_tta._version import __version__
from soda_tta.adaptors import Adaptor
from soda_tta.box import Box, Ledger, Transcript, asking, left_to_spend, load_box
from soda_tta.data import open_images
from soda_tta.engine.events import Step
from soda_tta.engine.loop import Training
from soda_tta.engine.rounding import drowned_probes
from soda_tta.engine.step import Task
from soda_tta.errors import BudgetError, ImageError, MethodError, RunError
from soda_tta.methods.online import Online, soda_o
from soda_tta.objectives.queue import Queue
from soda_tta.objectives.reliable import Selection
from soda_tta.storage.atomic import write_bytes
from soda_tta.types import Array

METHODS = {soda_o.name: soda_o}
ARRIVAL = 4  # a stream of randomness beside those of the loop
KEY, FORMAT = "soda_tta.engine.stream", 2
QUEUED = ("images", "labels", "confidences")


class Stream:
    """Answers batches of images as they come, and learns from each before it answers: `answers = stream(batch)`.

    `budget`: at most so many queries an image that has arrived, all purposes together; what a batch leaves over the
    next may use. With too little a stream learns less, and still answers. What the box refuses to answer leaves theta
    and the queue as they were; its queries remain paid and its images remain counted as arrived.

    >>> stream = Stream(lambda images: np.full((len(images), 4), 0.25), epochs=1, q=1, width=2)
    >>> stream(np.zeros((5, 3, 8, 8), np.float32)).shape, stream.ledger
    ((5, 4), Ledger(20 queries: select 5, probe 10, evaluate 5))
    """

    def __init__(
        self,
        box: Any,
        method: str | Online = "soda-o",
        seed: int = 0,
        budget: float | None = None,
        *,
        listener: Callable[[Step], None] | None = None,
        **settings: Any,
    ) -> None:
        if budget is not None and not 1 <= budget < math.inf:
            raise BudgetError(
                f"a budget of {budget:g} queries an image is none to keep; give a number, at least 1."
            )
        if seed < 0:
            raise MethodError(f"seed {seed} is negative; give 0 or more.")
        self.box, self.recipe = load_box(box), find_stream(method).but(**settings)
        recipe = self.recipe.recipe
        if recipe.needs != "probabilities":
            _ = (
                self.box.module
            )  # refuses a box that does not show its inside, before the first query
        assert recipe.adaptor is not None
        self.seed, self.budget, self.listener = seed, budget, listener
        self.adaptor: Adaptor = recipe.adaptor.build(seed)
        self.search = recipe.start(self.adaptor, seed)
        self.queue, self.ledger = Queue(self.recipe.queue), Ledger()
        self.images = self.batches = 0  # arrived so far
        self.prepaid = 0  # first looks in the ledger at images that have not arrived
        self.transcript: Transcript | None = None  # of a run that goes on after a kill

    def __call__(self, images: Any) -> Array:
        """The probabilities of each image of the next batch, in order: an array, or anything `adapt` takes."""
        source = open_images(images)
        arrived, search = source[slice(0, len(source))], self.recipe.recipe.search
        if not self.images and (
            told := drowned_probes(search, self.adaptor, arrived, self.box, self.seed)
        ):
            warnings.warn(told, stacklevel=2)
        return self.answer(arrived)

    def answer(self, images: Array, before: Array | None = None) -> Array:
        """The same; `before` are the model's answers to these very images, if they are paid already."""
        if len(self.queue) and images.shape[1:] != self.queue.images.shape[1:]:
            seen, now = (
                "x".join(map(str, stored.shape[:1:-1])) for stored in (self.queue.images, images)
            )
            raise ImageError(
                f"these images are {now}, those of this stream were {seen}; resize them."
            )
        self.images += len(images)
        if self.budget is not None:
            self.ledger.limit = math.floor(self.budget * self.images + 1e-9) + self.prepaid
        kept = self.search.state(), self.queue
        try:
            answers = self._look_learn_answer(images, before)
        except BaseException:
            self.search.restore(kept[0])
            self.queue = kept[1]
            raise
        self.batches += 1
        return answers

    def _look_learn_answer(self, images: Array, before: Array | None) -> Array:
        left, count = self._left(), len(images)
        if before is None:
            if self.search.count and left is not None and left < 2 * count:
                return self._adapted(
                    images
                )  # only one query is affordable: what was learned answers better
            before = self._asking("select")(images)
        self.queue = self.queue.push(images, before, self.recipe.recipe.reliable.tau)
        self._learn(images, before)
        left = self._left()
        if not self.search.count or (left is not None and left < count):
            return before  # an untrained network only adds noise
        return self._adapted(images)

    def _learn(self, images: Array, before: Array) -> None:
        """Mutual information of the images that are not in the queue, cross-entropy of those that are."""
        recipe, rest = self.recipe.recipe, ~self.queue.taken
        union = np.concatenate([images[rest], self.queue.images])
        selection = Selection(
            np.concatenate([before[rest].argmax(axis=1), self.queue.labels]),
            np.arange(len(union)) >= rest.sum(),
        )
        seed = int(np.random.default_rng([self.seed, ARRIVAL, self.batches]).integers(2**63 - 1))
        source, reserve = open_images(union), len(images)
        settings = recipe.objective, recipe.batch, seed, reserve
        task = Task(source, self.box, self.ledger, selection, *settings, self.transcript)
        try:
            for step in Training(task, self.adaptor, self.search).advance(recipe.epochs, "probe"):
                if self.listener is not None:
                    self.listener(replace(step, epoch=self.batches * recipe.epochs + step.epoch))
        except BudgetError:
            if not self.ledger.lost:
                raise
            # requests of this step that were lost have eaten up what it was to cost: the stream goes on without it

    def _adapted(self, images: Array) -> Array:
        self.adaptor.parameters = self.search.theta.astype(np.float32)
        return self._asking("evaluate")(self.adaptor(images))

    def _asking(self, purpose: str) -> Box:
        return asking(self.box, self.ledger, purpose, self.transcript)

    def _left(self) -> int | None:
        return left_to_spend(self.ledger, self.transcript)

    def __repr__(self) -> str:
        return f"Stream({self.box!r}, {self.recipe.name!r}, seed={self.seed}, budget={self.budget})"

    def save(self, path: str | Path) -> None:
        """Write everything the next batch depends on to one safetensors file; whole, or not at all."""
        arrays = {f"search.{name}": array for name, array in self.search.state().items()}
        arrays |= {f"queue.{name}": getattr(self.queue, name) for name in QUEUED}
        facts = {
            "format": FORMAT,
            "soda_tta": __version__,
            "method": self.recipe.name,
            "settings": self.recipe.settings,
            "seed": self.seed,
            "budget": self.budget,
            "box": self.box.card(),
            "images": self.images,
            "batches": self.batches,
            "queries": self.ledger.queries,
        }
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        write_bytes(Path(path), save(contiguous, {KEY: json.dumps(facts)}))

    @staticmethod
    def load(path: str | Path, box: Any, method: str | Online = "soda-o") -> Stream:
        """Continue a saved stream, bit for bit, in front of the same model; nothing in the file is executed."""
        arrays, facts = read_stream_file(Path(path))
        deployed, known = load_box(box), find_stream(method)
        if facts["method"] != known.name:
            raise RunError(f"{path} holds a stream of {facts['method']!r}, not of {known.name!r}.")
        known_box, this_box = facts["box"], json.loads(json.dumps(deployed.card()))
        if known_box["fingerprint"] != this_box["fingerprint"]:
            other = known_box["fingerprint"]
            raise RunError(
                f"{path} belongs to another model ({other}); start a new stream for this one."
            )
        if known_box != this_box:
            raise RunError(
                f"{path} was learnt with {known_box}, and this is {this_box}; tell the model the same."
            )
        try:
            stream = Stream(deployed, known, facts["seed"], facts["budget"], **facts["settings"])
            stream._restore(arrays, facts)
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path} holds a stream that cannot be continued: {error}") from error
        return stream

    def _restore(self, arrays: dict[str, Array], facts: dict[str, Any]) -> None:
        state = {
            name.removeprefix("search."): array
            for name, array in arrays.items()
            if name.startswith("search.")
        }
        fitting = {name: array.size for name, array in self.search.state().items()}
        if {name: array.size for name, array in state.items()} != fitting:
            raise ValueError("its vectors do not fit its settings.")
        self.search.restore(state)
        images, labels, confidences = (arrays[f"queue.{name}"] for name in QUEUED)
        if not len(images) == len(labels) == len(confidences) <= self.recipe.queue:
            raise ValueError("its queue is not whole.")
        self.queue = Queue(self.recipe.queue, images, labels, confidences)
        self.images, self.batches = int(facts["images"]), int(facts["batches"])
        self.ledger.queries = {purpose: int(count) for purpose, count in facts["queries"].items()}


def find_stream(method: str | Online) -> Online:
    """A method for streams, or the one of that name."""
    if isinstance(method, Online):
        return method
    if method not in METHODS:
        raise MethodError(f"{method!r} is no method for a stream; choose {' or '.join(METHODS)}.")
    return METHODS[method]


def read_stream_file(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    if not path.is_file():
        raise RunError(f"{path} does not exist; give a file written by Stream.save.")
    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})[KEY])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise RunError(
            f"{path} is not a stream of this package ({type(error).__name__})."
        ) from error
    if (
        not isinstance(facts, dict)
        or facts.get("format") != FORMAT
        or not {"method", "box"} <= facts.keys()
    ):
        raise RunError(
            f"{path} was written by another version of this package; it is not read to avoid misreading it."
        )
    return arrays, facts

"""`LiveStream`: answer live traffic with one query per image, and learn behind it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors import PLAIN, Answering, RoutedAdaptor
from soda_tta.box import Meter, load_box
from soda_tta.conditions.router import Routes
from soda_tta.data import open_images
from soda_tta.engine.live_arrivals import Arrival, Sent, Shelves, Waiting, renewed
from soda_tta.engine.live_events import LearningFailed, Listener, LiveEvent
from soda_tta.engine.live_file import read_live_file, write_live_file
from soda_tta.engine.live_learner import Learner
from soda_tta.engine.live_method import live_method
from soda_tta.engine.live_units import Life
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import BoxError, BudgetError, ImageError, MethodError
from soda_tta.storage.journal import Journal
from soda_tta.types import Array

AUDIT = "audit.jsonl"
STATE = "stream.safetensors"
LEAST_BUFFER = 384  # images: the recent ones, and as many before them


class LiveStream:
    """Answer images with the current adaptors, for one query each; learn from them afterwards.

    With a stated `prior`, answers are matched to it by class weights that follow the recent answers
    of a source, unless the confident ones contradict it. With `views=2` each image costs a query
    more, for its mirror image, if the model recognises that as well.

    Every condition of the images (noisy, blurred ...) has its own adaptor, which leaves images as
    they are until another one has won on recent images that it was not found on. A search starts
    from the identity, an adaptor of the shelf or a recipe. The test may be looked at after every
    image: over the whole life of the stream, a candidate that is no better is promoted with
    probability `level` at most. Afterwards a few images are watched, and an adaptor that stops
    winning is rolled back.

    `adapted` and `arrived` may be called from any thread, `learn` from one at a time.

    Parameters
    ----------
    box : the deployed model: whatever `load_box` takes.
    learn_budget : float, default 2
        The most queries of the learner per arrived image, all purposes together. What is not used
        may be used later, up to the allowance of a full buffer.
    buffer : int, default 1000
        The most recent images of each source that are kept, at 8 bits and at most 256 MB.
    level : float in (0, 0.5), default 0.01
        Accepted rate of false promotions over the whole life.
    seed : int, default 0
        Everything random follows from it.
    directory : path, optional
        Where `audit.jsonl` is written, and the state by `save()`.
    listener : callable, optional
        Receives every event of `engine/live_events.py`.
    sources : int, default 16
        The most keys to keep apart; the one not seen for the longest time makes room.
    settings : settings of soda-e: tried, caution, without, batch, prior, views.

    Examples
    --------
    >>> def model(images):
    ...     return np.full((len(images), 4), 0.25)
    >>> stream = LiveStream(model)
    >>> stream(np.zeros((5, 3, 8, 8), np.float32)).shape, stream.ledger
    ((5, 4), Ledger(5 queries: serve 5))
    """

    def __init__(
        self,
        box: Any,
        *,
        learn_budget: float = 2,
        buffer: int = 1000,
        level: float = 0.01,
        seed: int = 0,
        directory: str | Path | None = None,
        listener: Listener | None = None,
        sources: int = 16,
        method: Any = "soda-e",
        **settings: Any,
    ) -> None:
        if not 0 <= learn_budget < 1000:
            raise BudgetError(f"learn_budget={learn_budget} is not valid; give 0 to 1000.")
        if not (0 < level < 0.5 and seed >= 0 and sources >= 1 and buffer >= LEAST_BUFFER):
            raise MethodError(
                f"level {level}, seed {seed}, sources {sources} and buffer {buffer} are not valid: "
                "level lies in (0, 0.5), seed is 0 or more, sources 1 or more, "
                f"buffer {LEAST_BUFFER} or more."
            )
        self.method: Any = live_method(method, settings)
        self.settings = settings
        self.listener = listener
        self.directory = None if directory is None else Path(directory)
        self.audit = Journal(None if self.directory is None else self.directory / AUDIT)
        self.meter = Meter(load_box(box))
        self.learner = Learner(
            Life(self.method, self.meter, level, learn_budget),
            buffer=buffer,
            most=sources,
            seed=seed,
            report=self._report,
        )
        self._waiting = Waiting()
        self._shelves: Shelves = {}
        self._answers: dict[str | None, Answering] = {}
        self._learning = threading.RLock()

    @property
    def ledger(self) -> Any:
        """The queries of the learner, and the answers of `stream(images)`, by purpose."""
        return self.meter.ledger

    # -- answering -------------------------------------------------------------------------------

    def __call__(self, images: Any, key: str | None = None, client: str | None = None) -> Array:
        """The probabilities of the next images, in order; then learn within the allowance.

        Parameters
        ----------
        images : an array, or anything `adapt` takes.
        key : the source of the images, such as a camera; sources are kept apart.
        client : who sent them; every client has an even share of the buffer.
        """
        source = at_working_size(open_images(images), self.meter.box.input.view)
        arrived = source[slice(0, len(source))]
        answering = self.answering(key)
        adapted, routes = self.adapted(arrived, key)
        rows = np.asarray(self.meter.asking("serve")(answering.sent(adapted)))
        self.arrived(arrived, rows[: len(arrived)], key, routes=routes, client=client)
        answers = answering.received(rows)
        try:
            while self.learn():
                pass
        except BoxError as error:
            count = self.learner.life.arrived
            self._report(LearningFailed(key=key, arrived=count, reason=str(error)))
        return answers

    def adapted(self, images: Array, key: str | None = None) -> tuple[Array, Routes | None]:
        """What is to be sent to the model. No query.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width), RGB in [0, 1]
        key : the source of the images.

        Returns
        -------
        The adapted images, and where they belong; None if all images are left as they are.
        """
        shelf = self._shelves.get(key)
        if shelf is None:
            return images, None
        adapted, routes = shelf.quick.routed(images)
        sent = Sent(*routes)
        sent.version = shelf.version
        return adapted, sent

    def answering(self, key: str | None = None) -> Answering:
        """How the responses to images of this source become answers.

        Parameters
        ----------
        key : the source of the images.
        """
        return self._answers.get(key, PLAIN)

    def arrived(
        self,
        images: Array,
        answers: Array,
        key: str | None = None,
        *,
        routes: Routes | None = None,
        client: str | None = None,
    ) -> None:
        """Images as they came, and the probabilities of what was sent. Quick and bounded.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width)
        answers : array of shape (n, classes)
            As the model returned them: without class weights, and of the first view alone.
        key : the source of the images.
        routes : what `adapted` returned with these images. None: they were sent as they came,
            even if an adaptor has been promoted meanwhile.
        client : who sent them.
        """
        version = routes.version if isinstance(routes, Sent) else 0
        answers = np.asarray(answers, np.float32)
        self._waiting.add(Arrival(images, answers, key, client, version))

    # -- learning --------------------------------------------------------------------------------

    def learn(self) -> bool:
        """One unit of learning: about a hundred queries at most, or some images that wait.

        Returns
        -------
        False if there is nothing to do, or not enough allowance.
        """
        with self._learning:
            done = self._absorb() or self.learner.learn()
            if done:
                self.publish()
            return done

    def _absorb(self) -> bool:
        """Take over images that wait; return whether there were any."""
        if (arrival := self._waiting.take()) is not None:
            self.learner.absorb(arrival)
        return arrival is not None

    def publish(self) -> None:
        """Let `adapted` use the current shelves, from the next image on."""
        sources = self.learner.sources
        adaptors = {key: (each.shelf, each.version) for key, each in sources.items()}
        self._shelves = renewed(self._shelves, adaptors)
        self._answers = {key: each.answers.answering for key, each in sources.items()}

    def _report(self, event: LiveEvent) -> None:
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.audit.append({"time": time, **event.facts()})
        if self.listener is not None:
            self.listener(event)

    # -- control ---------------------------------------------------------------------------------

    def roll_back(self, key: str | None = None, reason: str = "by request") -> None:
        """Leave the images of a source as they are again; it is searched again after a rest."""
        with self._learning:
            if key not in self.learner.sources:
                raise ImageError(f"no image with key {key!r} has arrived.")
            for condition in self.learner.sources[key].conditions:
                if condition.theta.any():
                    self.learner.units(key).roll_back(condition, reason)
            self.publish()

    def shelf(self, key: str | None = None) -> RoutedAdaptor | None:
        """The adaptors that answer, as one adaptor to save; None if no image is adapted."""
        shelf = self._shelves.get(key)
        return None if shelf is None else shelf.adaptor.answered(self.answering(key))

    def facts(self) -> dict[str, Any]:
        """Everything that there is to see, as plain JSON. It does not wait for the learner."""
        waiting = {"waiting": self._waiting.images, "missed": self._waiting.missed}
        return {**self.learner.facts(), **waiting, "queries": self.ledger.by_purpose()}

    # -- on disk ---------------------------------------------------------------------------------

    def save(self, path: str | Path | None = None) -> None:
        """Write everything that the next image depends on to one file, atomically.

        Parameters
        ----------
        path : the file; by default `stream.safetensors` in the stream's directory.
        """
        if path is None:
            if self.directory is None:
                raise MethodError("this stream has no directory; give save() a path.")
            path = self.directory / STATE
        with self._learning:
            while self._absorb():
                pass
            write_live_file(Path(path), self)

    @staticmethod
    def load(
        path: str | Path,
        box: Any,
        *,
        directory: str | Path | None = None,
        listener: Listener | None = None,
    ) -> LiveStream:
        """Continue a saved stream, bit for bit, in front of the same model.

        Parameters
        ----------
        path : a file that `save` wrote; nothing in it is executed.
        box : the same model.
        directory, listener : as above; they are not part of the file.
        """
        stream: LiveStream = read_live_file(
            Path(path), load_box(box), LiveStream, directory, listener
        )
        return stream

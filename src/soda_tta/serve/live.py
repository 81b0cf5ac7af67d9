"""What the proxy needs of the object that decides how images are changed while they arrive."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Protocol

from soda_tta.adaptors import PLAIN, Adaptor, Answering, Identity, RoutedAdaptor
from soda_tta.adaptors.quick import for_requests
from soda_tta.engine.stream import Stream
from soda_tta.types import Array

# Where images belong, as the adaptor of conditions says it; `familiar` is a boolean array. None: no
# image is adapted.
Routes = Any


class LiveAdaptor(Protocol):
    """Changes images now, and may learn from them behind the traffic.

    Images are float32 NCHW RGB in [0, 1]. Every method may be called from any thread.
    """

    def adapted(self, images: Array, key: str | None = None) -> tuple[Array, Routes]:
        """What is to be sent in place of these images, and where they belong.

        Parameters
        ----------
        images : array of shape (n, 3, height, width)
        key : str, optional
            The source of the images, such as a camera.
        """

    def answering(self, key: str | None = None) -> Answering:
        """How the responses to images of this source become answers.

        Parameters
        ----------
        key : str, optional
            The source of the images.
        """

    def arrived(
        self,
        images: Array,
        answers: Array,
        key: str | None = None,
        *,
        routes: Routes = None,
        client: str | None = None,
    ) -> None:
        """Learn later from images as they came and the probabilities of what was sent.

        Quick; drops them if there are too many.

        Parameters
        ----------
        images : array of shape (n, 3, height, width)
        answers : array of shape (n, classes)
        key : str, optional
            The source of the images.
        routes : optional
            What `adapted` returned with these images.
        client : str, optional
            Who sent them.
        """

    def learn(self) -> bool:
        """One bounded piece of learning. False: there is nothing to do."""

    def facts(self) -> dict[str, Any]:
        """What is known now, as plain JSON."""

    def save(self) -> None:
        """Keep the state on disk."""


class FixedAdaptor:
    """A learned adaptor, or none, that never changes.

    Parameters
    ----------
    adaptor : Adaptor, default one that leaves images as they are

    Examples
    --------
    >>> import numpy as np
    >>> images = np.zeros((2, 3, 8, 8), np.float32)
    >>> same, routes = FixedAdaptor().adapted(images)
    >>> same is images, routes
    (True, None)
    """

    def __init__(self, adaptor: Adaptor | None = None) -> None:
        self.adaptor = adaptor or Identity()
        self.quick = for_requests(self.adaptor)

    @property
    def changes_nothing(self) -> bool:
        """Whether images and answers stay as they are."""
        return isinstance(self.adaptor, Identity) and self.adaptor.answering.is_plain

    def adapted(self, images: Array, key: str | None = None) -> tuple[Array, Routes]:
        if self.changes_nothing:
            return images, None
        if isinstance(self.quick, RoutedAdaptor):
            return self.quick.routed(images)
        return self.quick(images), None

    def answering(self, key: str | None = None) -> Answering:
        return self.adaptor.answering

    def arrived(self, images: Array, answers: Array, key: str | None = None, **more: Any) -> None:
        pass

    def learn(self) -> bool:
        return False

    def facts(self) -> dict[str, Any]:
        answers = self.adaptor.answering.describe()
        facts: dict[str, Any] = {"learning": False, "adaptor": self.adaptor.describe()}
        return {**facts, "answers": answers} if answers else facts

    def save(self) -> None:
        pass


class StrictStream:
    """The paper's SODA-O: learns from every batch before it is sent.

    A request waits for about 500 queries per image, and costs one more: what is sent in the end.

    Parameters
    ----------
    stream : Stream
    path : Path, optional
        Where `save` writes the stream. Default: nowhere.
    """

    def __init__(self, stream: Stream, path: Path | None = None) -> None:
        self.stream = stream
        self.path = path
        self.lock = threading.Lock()  # a stream answers one batch after the other

    def adapted(self, images: Array, key: str | None = None) -> tuple[Array, Routes]:
        with self.lock:
            self.stream.answer(images)
            if not self.stream.search.count:  # an untrained network only adds noise
                return images, None
            return self.stream.adaptor(images), None

    def answering(self, key: str | None = None) -> Answering:
        return PLAIN

    def arrived(self, images: Array, answers: Array, key: str | None = None, **more: Any) -> None:
        pass

    def learn(self) -> bool:
        return False

    def facts(self) -> dict[str, Any]:
        stream = self.stream
        return {
            "learning": True,
            "method": stream.method.name,
            "images": stream.images,
            "queries": stream.ledger.total,
        }

    def save(self) -> None:
        if self.path is not None:
            with self.lock:
                self.stream.save(self.path)

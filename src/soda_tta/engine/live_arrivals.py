"""Between requests and the learner: the shelves that answer, and images that wait, bounded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from soda_tta.adaptors import RoutedAdaptor
from soda_tta.adaptors.quick import quick_routed
from soda_tta.conditions.router import Routes
from soda_tta.types import Array

MOST = 1024  # images that wait; more are not learned from


class Sent(Routes):
    """Where images belong, and the version of the shelf that they were adapted by."""

    version: int = 0


class Shelf(NamedTuple):
    """The adaptors of a source that answer.

    Parameters
    ----------
    adaptor : as it is saved.
    quick : the same for a few images at a time.
    version : counts the shelves of a source.
    """

    adaptor: RoutedAdaptor
    quick: RoutedAdaptor
    version: int


Shelves = Mapping[str | None, Shelf]
Adaptors = Mapping[str | None, tuple[RoutedAdaptor | None, int]]


def renewed(before: Shelves, adaptors: Adaptors) -> Shelves:
    """The shelves with these adaptors; they are compiled only if they have changed.

    Parameters
    ----------
    before : the current shelves by key.
    adaptors : the adaptors of every key and their version; None leaves images as they are.
    """
    shelves = {}
    for key, (adaptor, version) in adaptors.items():
        if adaptor is None:
            continue
        shelf = before.get(key)
        if shelf is None or shelf.adaptor is not adaptor:
            shelf = Shelf(adaptor, quick_routed(adaptor), version)
        shelves[key] = shelf
    return shelves


class Arrival(NamedTuple):
    """Images as they came and the probabilities of what was sent."""

    images: Array
    answers: Array
    key: str | None
    client: str | None
    version: int  # of the shelf that they were adapted by


class Waiting:
    """Arrivals in their order. When too many images wait, further ones are only counted."""

    def __init__(self) -> None:
        self.images = 0
        self.missed = 0
        self._arrivals: deque[Arrival] = deque()
        self._lock = threading.Lock()

    def add(self, arrival: Arrival) -> None:
        """Hand over images; quick, from any thread."""
        count = len(arrival.images)
        with self._lock:
            if self._arrivals and self.images + count > MOST:
                self.missed += count
                return
            self._arrivals.append(arrival)
            self.images += count

    def take(self) -> Arrival | None:
        """The next images, if there are any."""
        with self._lock:
            if not self._arrivals:
                return None
            arrival = self._arrivals.popleft()
            self.images -= len(arrival.images)
            return arrival

"""The latest images of a source, bounded, with an even share for every client."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.engine.live_pixels import as_floats
from soda_tta.storage.named_arrays import Arrays, as_array, from_array
from soda_tta.types import Array

UNKNOWN = -1  # the adaptor that an answer was given with is not known


@dataclass
class Item:
    """An image that arrived.

    Parameters
    ----------
    number : how many images of the stream arrived before it.
    image : the image as it came, uint8 of shape (3, height, width). It is rounded to 8 bits when it
        enters the buffer; `answer` is to the image before that.
    answer : the probabilities of what was sent, (classes,).
    statistics : one row of `conditions/statistics.py`.
    condition : its condition; -1 before there is a router.
    adaptor : number of the adaptor it was sent through: 0 is none, `UNKNOWN` if not known.
    client : who sent it.
    used : whether a search or a test has used it.
    """

    number: int
    image: Array
    answer: Array
    statistics: Array
    condition: int
    adaptor: int
    client: str | None
    used: bool = False

    @property
    def pixels(self) -> Array:
        """The image as float32 in [0, 1]."""
        return as_floats(self.image)


FACTS = ("number", "condition", "adaptor", "client", "used")
ARRAYS = ("image", "answer", "statistics")


class Buffer:
    """Images in the order of their arrival.

    When it is full, the oldest image of the client that holds the most images makes room. So a
    client that sends much cannot push out the images of others.

    Parameters
    ----------
    most : int
        Images to keep.
    most_bytes : int
        Bytes of images to keep.
    """

    def __init__(self, most: int, most_bytes: int = 2**28) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.items: list[Item] = []
        self.clients: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return len(self.items)

    @property
    def room(self) -> int:
        """How many images of the size of the latest one fit."""
        if not self.items:
            return self.most
        return max(1, min(self.most, self.most_bytes // max(1, self.items[-1].image.nbytes)))

    def add(self, item: Item) -> None:
        """Add an image that arrived."""
        self.items.append(item)
        self.clients[item.client] += 1
        while len(self.items) > self.room:
            self._remove_one()

    def _remove_one(self) -> None:
        largest = max(self.clients.values())
        client, place = next(
            (item.client, place)
            for place, item in enumerate(self.items)
            if self.clients[item.client] == largest
        )
        del self.items[place]
        self.clients[client] -= 1
        if not self.clients[client]:
            del self.clients[client]

    def fresh(self, condition: int) -> list[Item]:
        """Images of a condition that nothing has used, the oldest first."""
        return [item for item in self.items if item.condition == condition and not item.used]

    def statistics(self) -> Array:
        """The statistics of all images, in their order."""
        return np.array([item.statistics for item in self.items])

    def state(self) -> Arrays:
        """Everything that is needed to continue, by name."""
        facts = [[getattr(item, name) for name in FACTS] for item in self.items]
        arrays = {"facts": as_array(facts)}
        if self.items:
            arrays |= {n: np.array([getattr(item, n) for item in self.items]) for n in ARRAYS}
        return arrays

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        self.items = []
        self.clients.clear()
        for place, facts in enumerate(from_array(state["facts"])):
            values: dict[str, Any] = dict(zip(FACTS, facts, strict=True))
            item = Item(**values, **{name: state[name][place] for name in ARRAYS})
            self.items.append(item)
            self.clients[item.client] += 1

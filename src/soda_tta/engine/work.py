"""What a method works with: the images, the metered model, and a place to keep what was billed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from soda_tta.box import Box, Meter
from soda_tta.data import Images
from soda_tta.data.scenes import in_order_of_appearance, scenes_among
from soda_tta.engine.events import Event, Listener, Step
from soda_tta.engine.plan import Plan
from soda_tta.errors import MethodError
from soda_tta.storage.run_folder import RunFolder
from soda_tta.types import Array, Purpose


class Interrupted(Exception):
    """The user asked to stop; what was billed so far is kept."""


@dataclass
class Work:
    """One run in progress.

    Parameters
    ----------
    images : the unlabelled images.
    meter : the deployed model, its ledger and its transcript.
    before : the model's probabilities for every image as it is, (images, classes). For a method
        without a first pass it is empty until `expect` is called, and NaN where the image as it is
        was not sent.
    plan : what the run may spend.
    seed : everything random follows from it.
    folder : where the run is kept; a folder without a path keeps nothing.
    listener : receives every event.
    stop : asked after every step; once it returns True, the run ends as soon as possible.
    groups : one number per image, equal for images that belong together; None if not stated.
    kinds : one number per image, equal for images of one known condition; None if not stated.
    """

    images: Images
    meter: Meter
    before: Array
    plan: Plan
    seed: int = 0
    folder: RunFolder = field(default_factory=lambda: RunFolder(None))
    listener: Listener = lambda event: None
    stop: Callable[[], bool] = lambda: False
    groups: Array | None = None
    kinds: Array | None = None
    history: list[Step] = field(default_factory=list)

    def expect(self, classes: int) -> None:
        """State how many classes there are, for a method without a first pass."""
        if not self.before.shape[1]:
            self.before = np.full((len(self.images), classes), np.nan, np.float32)

    @property
    def box(self) -> Box:
        """The model, counted as "probe"."""
        return self.asking("probe")

    def asking(self, purpose: Purpose) -> Box:
        """The model for one purpose: counted, within the budget, replayed after a crash."""
        return self.meter.asking(purpose)

    def seen(self, place: slice | Array) -> Array:
        """Images as they reach the model, for methods that work on a copy of the model itself."""
        return self.meter.box.as_received(self.images[place])

    def scenes(self, places: Array) -> Array:
        """The scene of each of some images: as stated by the user, or found from the pixels."""
        if self.groups is not None:
            return in_order_of_appearance(self.groups[places])
        return scenes_among(self.images, places)

    def tell(self, event: Event) -> None:
        """Pass an event to the listener."""
        self.listener(event)

    def record(self, step: Step) -> None:
        """Add a step to the history; raise Interrupted if the user asked to stop."""
        if not isinstance(step, Step):
            raise MethodError(f"record() takes a Step, not a {type(step).__name__}.")
        self.history.append(step)
        self.tell(step)
        self.check_stop()

    def check_stop(self) -> None:
        """Raise Interrupted if the user asked to stop."""
        if self.stop():
            raise Interrupted

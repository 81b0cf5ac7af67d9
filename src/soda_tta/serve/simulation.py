"""Traffic to try a proxy with: images whose condition comes, goes, mixes and returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from soda_tta.data.images import Images
from soda_tta.errors import SodaError
from soda_tta.types import Array

CLEAN = "clean"
PIECE = 0.1  # seconds of waiting, until it is looked whether to stop
Ask = Callable[[Array], Array]  # images to probabilities


@dataclass(frozen=True)
class Phase:
    """So many images of one condition, or of several at random."""

    conditions: tuple[str, ...]
    images: int

    @property
    def name(self) -> str:
        return "+".join(self.conditions)


def parse_shifts(text: str, known: Sequence[str]) -> tuple[Phase, ...]:
    """A schedule such as `clean:500,fog:1000,fog+clean:500`.

    Parameters
    ----------
    text : str
        CONDITION:IMAGES, separated by commas; + mixes conditions.
    known : sequence of str
        The names of the conditions.

    Examples
    --------
    >>> [phase.name for phase in parse_shifts("clean:5,fog+clean:9", ["clean", "fog"])]
    ['clean', 'fog+clean']
    """
    phases = []
    for part in text.split(","):
        names, _, count = part.strip().partition(":")
        conditions = tuple(names.split("+"))
        unknown = [name for name in conditions if name not in known]
        if unknown:
            raise SodaError(f"{unknown[0]!r} is not a condition; choose from {', '.join(known)}.")
        if not count.isdecimal() or int(count) < 1:
            raise SodaError(
                f"{part!r} is not valid in a schedule; write CONDITION:IMAGES, such as fog:500."
            )
        phases.append(Phase(conditions, int(count)))
    return tuple(phases)


@dataclass(frozen=True)
class Window:
    """Consecutive images of one phase. Accuracies are shares of 1, or None without labels.

    Parameters
    ----------
    start, images : int
        The place of its first image in the traffic, and how many there are.
    phase : int
        The place of its phase in the schedule.
    condition : str
    proxy, direct : float or None
        Accuracy with the proxy, and of the model asked directly.
    changed : float or None
        Share of answers that differ between the two.
    """

    start: int
    images: int
    phase: int
    condition: str
    proxy: float | None
    direct: float | None
    changed: float | None

    def summary(self) -> dict[str, Any]:
        """The window as plain JSON."""
        shares = {"proxy": self.proxy, "direct": self.direct, "changed": self.changed}
        return {
            "start": self.start,
            "images": self.images,
            "phase": self.phase,
            "condition": self.condition,
            **{name: None if each is None else round(each, 4) for name, each in shares.items()},
        }


@dataclass
class Simulation:
    """Sends images in the order of a schedule, and keeps what was answered.

    Whatever ends `run`, what was measured until then stays.

    Parameters
    ----------
    conditions : mapping
        The same images under each condition, by its name.
    phases : sequence of Phase
    proxy : callable
        Images to probabilities: a box of the proxy.
    direct : callable, optional
        The same for the model itself, for comparison.
    labels : array, optional
        The class numbers of the images. Default: None, they are unknown.
    rate : float, optional
        Images per second. Default: None, as fast as they are answered.
    batch : int, default 1
        Images per request.
    seed : int, default 0
        Chooses the order of the images, and the condition of each in a mix.

    Examples
    --------
    >>> from soda_tta.data import open_images
    >>> clean = open_images(np.zeros((4, 3, 8, 8), np.float32))
    >>> answers = lambda images: np.tile([[0.9, 0.1]], (len(images), 1))
    >>> simulation = Simulation({"clean": clean}, [Phase(("clean",), 6)], answers,
    ...                         labels=np.array([0, 0, 0, 1]))
    >>> simulation.run()
    >>> [window.images for window in simulation.windows(4)]
    [4, 2]
    """

    conditions: Mapping[str, Images]
    phases: Sequence[Phase]
    proxy: Ask
    direct: Ask | None = None
    labels: Array | None = None
    rate: float | None = None
    batch: int = 1
    seed: int = 0
    seconds: float = 0.0
    _answers: dict[str, list[int]] = field(default_factory=lambda: {"proxy": [], "direct": []})

    def __post_init__(self) -> None:
        if self.batch < 1 or (self.rate is not None and self.rate <= 0):
            raise SodaError(
                f"a rate of {self.rate} and a batch of {self.batch} are not valid; use more than 0."
            )
        random = np.random.default_rng(self.seed)
        (count,) = {len(images) for images in self.conditions.values()}
        if not count:
            raise SodaError("there are no images to send.")
        rounds = -(-self.total // count)  # every image once, before any comes again
        order = np.concatenate([random.permutation(count) for _ in range(rounds)])
        self.positions: Array = order[: self.total]
        self.phase_of: Array = np.repeat(
            np.arange(len(self.phases)), [phase.images for phase in self.phases]
        )
        self.names = [
            phase.conditions[int(random.integers(len(phase.conditions)))]
            for phase in self.phases
            for _ in range(phase.images)
        ]

    @property
    def total(self) -> int:
        """The images of the whole schedule."""
        return sum(phase.images for phase in self.phases)

    @property
    def sent(self) -> int:
        """The images that were answered."""
        return len(self._answers["proxy"])

    def run(
        self,
        *,
        stop: Callable[[], bool] = lambda: False,
        advance: Callable[[int], Any] = lambda images: None,
    ) -> None:
        """Send the images until the schedule ends, or until `stop()`.

        Parameters
        ----------
        stop : callable
            Asked before each request.
        advance : callable
            Receives the number of images after each request.
        """
        began = time.monotonic()
        for start in range(0, self.total, self.batch):
            wait_until(began + start / self.rate if self.rate else began, stop)
            if stop():
                return
            images = self._images(start, min(start + self.batch, self.total))
            answers = self.proxy(images)
            if self.direct is not None:
                self._answers["direct"] += self.direct(images).argmax(axis=1).tolist()
            self._answers["proxy"] += answers.argmax(axis=1).tolist()
            self.seconds = time.monotonic() - began
            advance(len(images))

    def _images(self, start: int, end: int) -> Array:
        """Images of the traffic, each under its condition."""
        return np.concatenate(
            [
                self.conditions[self.names[place]][self.positions[place : place + 1]]
                for place in range(start, end)
            ]
        )

    def windows(self, size: int) -> list[Window]:
        """What was measured, in windows of `size` images; none contains two phases.

        Parameters
        ----------
        size : int
            The most images of a window.
        """
        return list(self._windows(size))

    def by_phase(self) -> list[Window]:
        """What was measured, one window per phase."""
        return list(self._windows(self.total))

    def _windows(self, size: int) -> Iterator[Window]:
        end = 0
        for number, phase in enumerate(self.phases):
            first, end = end, end + phase.images
            for start in range(first, min(end, self.sent), size):
                yield self._window(number, start, min(start + size, end, self.sent))

    def _window(self, phase: int, start: int, end: int) -> Window:
        proxy, direct = (np.array(self._answers[who][start:end]) for who in ("proxy", "direct"))
        labels = None if self.labels is None else self.labels[self.positions[start:end]]
        asked = self.direct is not None
        return Window(
            start,
            end - start,
            phase,
            self.phases[phase].name,
            None if labels is None else float((proxy == labels).mean()),
            None if labels is None or not asked else float((direct == labels).mean()),
            float((proxy != direct).mean()) if asked else None,
        )

    def summary(self, size: int) -> dict[str, Any]:
        """What was measured as plain JSON, in windows of `size` images and by phase."""
        return {
            "images": self.sent,
            "planned": self.total,
            "seconds": round(self.seconds, 2),
            "rate": self.rate,
            "batch": self.batch,
            "seed": self.seed,
            "window": size,
            "phases": [window.summary() for window in self.by_phase()],
            "windows": [window.summary() for window in self.windows(size)],
        }


def wait_until(moment: float, stop: Callable[[], bool]) -> None:
    """Wait until a moment of `time.monotonic`, or until `stop()`."""
    while not stop() and (left := moment - time.monotonic()) > 0:
        time.sleep(min(left, PIECE))

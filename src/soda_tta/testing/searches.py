"""`check_search`: whether a search can be driven, paused and restored."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.search import SGD, Search, SearchSettings
from soda_tta.types import Array

DIMENSION = 6
GOAL = np.linspace(-1, 1, DIMENSION)


def check_search(settings: SearchSettings, steps: int = 12) -> None:
    """Check the settings of a search, and the searches it starts.

    Parameters
    ----------
    settings : a frozen dataclass with `candidates`, `probe_length` and `start`.
    steps : how many steps are driven.

    Raises
    ------
    AssertionError
        With what is wrong.

    Examples
    --------
    >>> from soda_tta.search import Evolution
    >>> check_search(Evolution())
    """
    assert settings.candidates >= 1, "a step costs at least one query per image"
    length = settings.probe_length
    assert length is None or length > 0, "probe_length is None or positive"
    search = start(settings)
    points = search.ask()
    assert points.ndim == 2 and points.shape[1] == DIMENSION, "ask() gives one point per row"
    assert np.array_equal(points[0], search.theta), "the first point is the current one"
    assert np.array_equal(points, search.ask()), "ask() gives the same points until it is told"
    if search.wants == "losses":
        assert len(points) == settings.candidates, "there is one point per candidate"
    check_determinism(settings, steps)
    check_restore(settings, steps)
    check_progress(settings)


def start(settings: SearchSettings, seed: int = 1) -> Search:
    """A search on the test function."""
    step = SGD(lr=0.05, momentum=0.0, weight_decay=0.0)
    return settings.start(np.zeros(DIMENSION), step=step, units=np.ones(DIMENSION), seed=seed)


def loss(point: Array) -> float:
    """A quadratic with its minimum at GOAL."""
    return float(((point - GOAL) ** 2).sum())


def tell(search: Search) -> None:
    """Tell a search what it wants to know about its points."""
    points = search.ask()
    values: Any
    if search.wants == "gradient":
        values = 2 * (points[0] - GOAL)
    elif search.wants == "group changes":
        values = [loss(points[0]), *(loss(point) - loss(points[0]) for point in points[1:])]
    else:
        values = [loss(point) for point in points]
    search.tell(values)


def check_determinism(settings: SearchSettings, steps: int) -> None:
    """The same seed gives the same path."""
    first = start(settings)
    second = start(settings)
    for _ in range(steps):
        tell(first)
        tell(second)
    assert first.count == steps, "count is the number of steps"
    assert np.array_equal(first.theta, second.theta), "the same seed gives another path"


def check_restore(settings: SearchSettings, steps: int) -> None:
    """A search that is restored from its state continues bit for bit."""
    whole = start(settings)
    for _ in range(steps // 2):
        tell(whole)
    state = {name: np.array(array) for name, array in whole.state().items()}
    restored = start(settings)
    restored.restore(state)
    for _ in range(steps - steps // 2):
        tell(whole)
        tell(restored)
    assert restored.count == whole.count, "a restored search has lost its count"
    assert np.array_equal(restored.theta, whole.theta), "a restored search takes another path"


def check_progress(settings: SearchSettings, steps: int = 150) -> None:
    """The search moves towards the minimum of a quadratic."""
    search = start(settings)
    for _ in range(steps):
        tell(search)
    assert loss(search.theta) < loss(np.zeros(DIMENSION)), "the loss does not fall"

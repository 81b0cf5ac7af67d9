"""Identical queries are billed once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.box import Cached, CallableBox, Ledger, Metered
from soda_tta.errors import BoxError, BudgetError


def brightness(images: np.ndarray) -> np.ndarray:
    mean = images.mean((1, 2, 3))
    return np.stack([mean, 1 - mean], 1)


def grey(*levels: int) -> np.ndarray:
    """One small image per level, 0 to 255."""
    return np.repeat(np.array(levels, np.float32) / 255, 12).reshape(len(levels), 3, 2, 2)


def metered(limit: int | None = None) -> tuple[Cached, Ledger]:
    ledger = Ledger(limit)
    return Cached(Metered(CallableBox(brightness), ledger, "serve")), ledger


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=8))
def test_each_distinct_image_is_billed_once_and_responses_are_in_order(
    calls: list[list[int]],
) -> None:
    box, ledger = metered()
    for levels in calls:
        images = grey(*levels)
        got = box(images)
        if levels:
            np.testing.assert_allclose(got, brightness(images), atol=1e-6)
        else:
            assert len(got) == 0
    queries = [level for levels in calls for level in levels]
    assert ledger.total == len(set(queries))
    assert box.hits == len(queries) - len(set(queries))


def test_a_cached_response_does_not_use_the_budget() -> None:
    box, ledger = metered(limit=3)
    box(grey(1, 2, 3, 3, 2))
    box(grey(3, 1))
    assert ledger.left == 0
    with pytest.raises(BudgetError):
        box(grey(1, 4))
    np.testing.assert_allclose(box(grey(2)), brightness(grey(2)), atol=1e-6)


def test_the_least_recently_used_response_is_forgotten_first() -> None:
    ledger = Ledger()
    box = Cached(Metered(CallableBox(brightness), ledger, "serve"), capacity=2)
    box(grey(1, 2))
    box(grey(1))  # now 2 is the oldest
    box(grey(3))
    assert ledger.total == 3
    box(grey(1, 3))
    assert ledger.total == 3
    box(grey(2))
    assert ledger.total == 4


def test_a_call_may_be_larger_than_the_capacity() -> None:
    box = Cached(CallableBox(brightness), capacity=2)
    np.testing.assert_allclose(box(grey(*range(10))), brightness(grey(*range(10))), atol=1e-6)


def test_an_image_that_differs_in_one_bit_is_another_image() -> None:
    box, ledger = metered()
    images = grey(100)
    box(images)
    images[0, 2, 1, 1] = np.nextafter(images[0, 2, 1, 1], np.float32(1))
    box(images)
    assert ledger.total == 2


def test_the_same_bytes_in_another_shape_are_another_image() -> None:
    box, ledger = metered()
    box(np.zeros((1, 3, 2, 8), np.float32))
    box(np.zeros((1, 3, 8, 2), np.float32))
    assert ledger.total == 2


def test_writing_into_a_response_does_not_change_the_cache() -> None:
    box, _ = metered()
    box(grey(51))[:] = 9
    box(grey(51))[:] = 9
    np.testing.assert_allclose(box(grey(51)), [[0.2, 0.8]], atol=1e-6)


def test_a_failure_is_not_cached() -> None:
    failures = [RuntimeError("once")]

    def unreliable(images: np.ndarray) -> np.ndarray:
        if failures:
            raise failures.pop()
        return brightness(images)

    box = Cached(CallableBox(unreliable))
    with pytest.raises(BoxError):
        box(grey(1, 2))
    np.testing.assert_allclose(box(grey(1, 2)), brightness(grey(1, 2)), atol=1e-6)


def test_threads_that_query_the_same_image_at_once_are_billed_once() -> None:
    together = threading.Barrier(8)
    asked = []

    def slow(images: np.ndarray) -> np.ndarray:
        asked.extend(images[:, 0, 0, 0])
        threading.Event().wait(0.02)
        return brightness(images)

    box = Cached(CallableBox(slow))

    def query(number: int) -> np.ndarray:
        together.wait()
        return box(grey(1, 2, 3 + number % 2))

    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(query, range(8)))
    assert len(asked) == 4
    for number, response in enumerate(responses):
        np.testing.assert_allclose(response, brightness(grey(1, 2, 3 + number % 2)), atol=1e-6)

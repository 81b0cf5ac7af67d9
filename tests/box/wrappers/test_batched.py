"""Several requests at once, with the responses in order."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.box import Batched, CallableBox, Retrying
from soda_tta.errors import BoxError, BoxUnavailable


def numbered(count: int) -> np.ndarray:
    """Images that differ in brightness."""
    return np.repeat(np.arange(count, dtype=np.float32) / 255, 12).reshape(count, 3, 2, 2)


def brightness(images: np.ndarray) -> np.ndarray:
    mean = images.mean((1, 2, 3))
    return np.stack([mean, 1 - mean], 1)


@settings(deadline=None, max_examples=40)
@given(count=st.integers(0, 60), batch=st.integers(1, 20), workers=st.integers(1, 6))
def test_responses_are_in_order_and_every_image_is_sent_once(
    count: int, batch: int, workers: int
) -> None:
    sizes: list[int] = []
    box = Batched(
        CallableBox(lambda piece: sizes.append(len(piece)) or brightness(piece)),
        batch=batch,
        workers=workers,
    )
    got = box(numbered(count))
    if count:
        np.testing.assert_allclose(got, brightness(numbered(count)), atol=1e-6)
    assert len(got) == count == sum(sizes)
    assert not sizes or max(sizes) <= batch


def test_order_is_kept_when_the_first_request_is_the_slowest() -> None:
    answered = []
    others_done = threading.Event()

    def slow_for_the_first(images: np.ndarray) -> np.ndarray:
        if images[0, 0, 0, 0] == 0:
            assert others_done.wait(5)
        answered.append(images)
        if len(answered) == 3:
            others_done.set()
        return brightness(images)

    got = Batched(CallableBox(slow_for_the_first), batch=2, workers=2)(numbered(8))
    assert answered[-1][0, 0, 0, 0] == 0
    np.testing.assert_allclose(got, brightness(numbered(8)), atol=1e-6)


def test_as_many_requests_are_in_flight_as_there_are_workers() -> None:
    together = threading.Barrier(3)
    lock = threading.Lock()
    now = [0]
    most = [0]

    def counted(images: np.ndarray) -> np.ndarray:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(5)  # breaks unless three requests are here at once
        with lock:
            now[0] -= 1
        return brightness(images)

    Batched(CallableBox(counted), batch=1, workers=3)(numbered(12))
    assert most[0] == 3


def test_a_request_that_fails_is_retried_alone() -> None:
    asked: list[float] = []

    def unreliable(images: np.ndarray) -> np.ndarray:
        first = round(float(images[0, 0, 0, 0]) * 255)
        asked.append(first)
        if first == 4 and asked.count(4) < 3:
            raise BoxUnavailable("busy")
        return brightness(images)

    retrying = Retrying(CallableBox(unreliable, batch=2), sleep=lambda _: None)
    np.testing.assert_allclose(Batched(retrying)(numbered(10)), brightness(numbered(10)), atol=1e-6)
    assert sorted(asked) == [0, 2, 4, 4, 4, 6, 8]


def test_after_a_failure_no_further_request_is_sent() -> None:
    asked: list[int] = []

    def broken(images: np.ndarray) -> np.ndarray:
        asked.append(len(images))
        raise ValueError("no")

    with pytest.raises(BoxError, match="no"):
        Batched(CallableBox(broken), batch=1, workers=2)(numbered(200))
    assert len(asked) <= 2  # one for each worker


def test_the_request_size_is_that_of_the_box_unless_stated() -> None:
    assert Batched(CallableBox(brightness, batch=7)).batch == 7
    assert Batched(CallableBox(brightness, batch=7), batch=3).batch == 3


def test_an_interrupted_request_is_not_retried_in_the_background() -> None:
    asked: list[int] = []
    begun = threading.Barrier(4)

    def gone(images: np.ndarray) -> np.ndarray:
        number = round(float(images[0, 0, 0, 0]) * 255)
        asked.append(number)
        if len(asked) <= 4:
            begun.wait(5)
        if number == 0:
            raise KeyboardInterrupt
        raise BoxUnavailable("timed out")

    retrying = Retrying(CallableBox(gone), first_wait=60, longest_wait=60)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Batched(retrying, batch=1, workers=4)(numbered(4))
    assert sorted(asked) == [0, 1, 2, 3] and time.monotonic() - began < 5
    retrying.box = CallableBox(brightness)
    assert not retrying.cancelled.is_set()  # the next call retries as before
    np.testing.assert_allclose(
        Batched(retrying, batch=1)(numbered(4)), brightness(numbered(4)), atol=1e-6
    )

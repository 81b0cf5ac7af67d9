"""Rate limits, with a clock of their own and with a real one."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from soda_tta.box import Batched, CallableBox, Ledger, Meter, Retrying
from soda_tta.box.wrappers.limited import Limited, Limiter
from soda_tta.errors import BoxUnavailable


class Clock:
    """Time passes by sleeping only."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@settings(max_examples=60, deadline=None)
@given(
    qps=some.floats(0.5, 50),
    requests=some.lists(some.tuples(some.integers(1, 8), some.floats(0, 1)), max_size=30),
    window=some.floats(0.1, 5),
)
def test_no_window_sees_more_than_the_limit_and_one_request(qps, requests, window) -> None:
    clock = Clock()
    limiter = Limiter(qps, clock=clock, sleep=clock.sleep)
    sent: list[tuple[float, int]] = []
    for images, idle in requests:
        clock.now += idle
        limiter.enter(images)
        sent.append((clock(), images))
        limiter.leave()
    for start, _ in sent:
        inside = [images for at, images in sent if start <= at < start + window]
        assert sum(inside) <= qps * window + max(inside) + 1e-6
    if sent:
        assert sent[0][0] == pytest.approx(50.0 + requests[0][1])  # an idle one does not wait


def test_the_limit_holds_over_threads_and_is_used(images) -> None:
    sent = []

    def model(images):
        sent.append(time.monotonic())
        return np.full((len(images), 2), 0.5)

    box = Batched(Limited(CallableBox(model), Limiter(max_qps=500)), batch=5, workers=4)
    began = time.monotonic()
    box(np.concatenate([images, images]))
    assert time.monotonic() - began >= 95 / 500
    gaps = np.diff(sorted(sent))
    assert (sorted(sent)[-1] - began) < 5  # not much longer than it has to be
    assert np.mean(gaps) >= 0.9 * 5 / 500


def test_no_more_requests_in_flight_than_allowed(images) -> None:
    busy: list[int] = []
    most: list[int] = []

    def model(images):
        busy.append(1)
        most.append(len(busy))
        time.sleep(0.002)
        busy.pop()
        return np.full((len(images), 2), 0.5)

    limited = Limited(CallableBox(model), Limiter(max_concurrent=2))
    Batched(limited, batch=5, workers=8)(images)
    assert max(most) == 2


def test_a_wait_is_shown_and_is_not_counted_as_sent(images) -> None:
    clock = Clock()
    limiter = Limiter(2, clock=clock, sleep=clock.sleep)
    model = CallableBox(lambda x: np.full((len(x), 2), 0.5))
    box = Batched(Retrying(Limited(model, limiter)), workers=1)
    shown = []
    spent = []
    ledger = Ledger()

    def waiting(seconds: float, reason: str) -> None:
        shown.append((seconds, reason))
        spent.append(ledger.total)

    meter = Meter(box, ledger, waiting=waiting)
    for _ in range(3):
        meter.asking("probe")(images[:4])
    assert shown == [(2.0, "at most 2 queries per second.")] * 2
    assert spent == [4, 8]


def test_a_request_that_waits_can_be_interrupted(images) -> None:
    limiter = Limiter(0.01)
    box = Batched(Limited(CallableBox(lambda x: np.full((len(x), 2), 0.5)), limiter), workers=2)
    box(images[:1])

    def pieces():
        yield images[:2]
        time.sleep(0.02)
        raise KeyboardInterrupt

    ledger = Ledger()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(Meter(box, ledger).asking("probe").each(pieces()))
    assert time.monotonic() - began < 5
    assert ledger.total == 0
    assert limiter.in_flight == 0


def test_one_that_waits_for_a_place_can_be_interrupted() -> None:
    limiter = Limiter(max_concurrent=1)
    limiter.enter(1)
    failures = []

    def wait() -> None:
        try:
            limiter.enter(1)
        except BoxUnavailable as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    limiter.give_up(True)
    thread.join(5)
    assert [failure.sent for failure in failures] == [False]
    limiter.give_up(False)
    assert not limiter.enter_at_once(1)
    limiter.leave()
    assert limiter.enter_at_once(1)

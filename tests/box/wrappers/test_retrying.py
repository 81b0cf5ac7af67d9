"""Retry when a service is briefly unavailable, and only then."""

import numpy as np
import pytest

from soda_tta.box import CallableBox, Retrying
from soda_tta.errors import BoxError, BoxUnavailable

GREY = np.full((2, 3, 4, 4), 0.5, np.float32)


def halves(images: np.ndarray) -> np.ndarray:
    return np.full((len(images), 2), 0.5)


class Failing:
    """Raises these, one per request, then responds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.requests = 0

    def __call__(self, images: np.ndarray) -> np.ndarray:
        self.requests += 1
        if self.errors:
            raise self.errors.pop(0)
        return halves(images)


def busy(count: int, retry_after: float | None = None) -> list[BoxUnavailable]:
    return [BoxUnavailable("the service is busy.", retry_after) for _ in range(count)]


def test_a_service_that_comes_back_is_retried_until_it_responds() -> None:
    waits: list[float] = []
    failing = Failing(*busy(3))
    assert Retrying(CallableBox(failing), sleep=waits.append)(GREY).tolist() == [[0.5, 0.5]] * 2
    assert (failing.requests, len(waits)) == (4, 3)


def test_it_gives_up_without_a_last_wait() -> None:
    waits: list[float] = []
    failing = Failing(*busy(99))
    with pytest.raises(BoxUnavailable, match=r"^the service is busy. Gave up after 4 attempts.$"):
        Retrying(CallableBox(failing), attempts=4, sleep=waits.append)(GREY)
    assert (failing.requests, len(waits)) == (4, 3)


def test_an_exception_of_the_model_is_not_retried() -> None:
    failing = Failing(ValueError("bad request"))
    with pytest.raises(BoxError, match="bad request"):
        Retrying(CallableBox(failing), sleep=pytest.fail)(GREY)
    assert failing.requests == 1


@pytest.mark.parametrize("invalid", [[[np.nan, 1.0]] * 2, [[3.0, 4.0]] * 2])
def test_an_invalid_response_is_not_retried(invalid: list) -> None:
    with pytest.raises(BoxError):
        Retrying(CallableBox(lambda images: invalid), sleep=pytest.fail)(GREY)


def test_the_wait_doubles_up_to_a_bound_and_has_jitter() -> None:
    ceilings = [0.5, 1, 2, 4, 5, 5, 5, 5, 5]
    runs = []
    for _ in range(200):
        waits: list[float] = []
        box = Retrying(
            CallableBox(Failing(*busy(9))),
            attempts=10,
            first_wait=0.5,
            longest_wait=5,
            sleep=waits.append,
        )
        box(GREY)
        runs.append(waits)
    assert all(
        0 <= wait <= ceiling
        for waits in runs
        for wait, ceiling in zip(waits, ceilings, strict=True)
    )
    # full jitter: none of 200 waits in the upper half has probability 2^-200
    for waits, ceiling in zip(zip(*runs, strict=True), ceilings, strict=True):
        assert max(waits) > ceiling / 2 > min(waits)
        assert len(set(waits)) > 100


def test_it_never_waits_less_than_the_server_asks() -> None:
    waits: list[float] = []
    Retrying(CallableBox(Failing(*busy(4, retry_after=7))), first_wait=0.5, sleep=waits.append)(
        GREY
    )
    assert waits == [7, 7, 7, 7]  # the back-off of four attempts is at most 4


def test_a_server_that_asks_for_an_hour_is_not_retried() -> None:
    failing = Failing(*busy(1, retry_after=3600))
    with pytest.raises(BoxUnavailable, match="The server asks to wait 3600 s; try later"):
        Retrying(CallableBox(failing), sleep=pytest.fail)(GREY)
    assert failing.requests == 1


def test_zero_attempts_are_refused() -> None:
    with pytest.raises(BoxError, match="0 is not a valid number of attempts"):
        Retrying(CallableBox(halves), attempts=0)

"""A Python function as a box: its input, its errors and its time limit."""

import threading
import time

import numpy as np
import pytest

from soda_tta.box import CallableBox, Input
from soda_tta.errors import BoxError, BoxUnavailable

GREY = np.full((2, 3, 4, 4), 0.5, np.float32)


def halves(images: np.ndarray) -> np.ndarray:
    return np.full((len(images), 2), 0.5)


class Forest:
    def __call__(self, images: np.ndarray) -> np.ndarray:
        return halves(images)


def test_the_function_sees_prepared_images() -> None:
    received = []
    box = CallableBox(
        lambda images: received.append(images) or halves(images),
        input=Input(layout="NHWC", pixel_range=255),
    )
    box(GREY)
    np.testing.assert_array_equal(received[0], np.full((2, 4, 4, 3), 127.5, np.float32))


def test_a_function_that_writes_into_its_input_does_not_change_ours() -> None:
    def write(images: np.ndarray) -> np.ndarray:
        images *= 0
        return halves(images)

    CallableBox(write)(GREY)
    assert (GREY == 0.5).all()


def test_an_exception_of_the_function_is_a_box_error_with_its_cause() -> None:
    def broken(images: np.ndarray) -> np.ndarray:
        raise RuntimeError("out of memory on device 0")

    with pytest.raises(
        BoxError, match="the model raised RuntimeError: out of memory on device 0"
    ) as caught:
        CallableBox(broken)(GREY)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert not isinstance(caught.value, BoxUnavailable)


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_box_error_of_the_function_is_raised_unchanged(timeout: float | None) -> None:
    def busy(images: np.ndarray) -> np.ndarray:
        raise BoxUnavailable("come back", retry_after=3)

    with pytest.raises(BoxUnavailable, match=r"^come back$") as caught:
        CallableBox(busy, timeout=timeout)(GREY)
    assert caught.value.retry_after == 3


def test_ctrl_c_inside_the_function_stays_ctrl_c() -> None:
    def interrupted(images: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CallableBox(interrupted)(GREY)


def test_a_function_that_hangs_is_unavailable_after_the_timeout() -> None:
    released = threading.Event()
    box = CallableBox(lambda images: released.wait(10) and halves(images), timeout=0.1)
    began = time.perf_counter()
    with pytest.raises(BoxUnavailable, match=r"did not respond within 0.1 s; .*timeout=0.4"):
        box(GREY)
    assert 0.09 < time.perf_counter() - began < 5
    released.set()


def test_a_fast_function_is_not_affected_by_its_timeout() -> None:
    assert CallableBox(halves, timeout=10)(GREY).tolist() == [[0.5, 0.5]] * 2


def test_an_exception_under_a_timeout_is_a_box_error() -> None:
    with pytest.raises(BoxError, match="the model raised ZeroDivisionError"):
        CallableBox(lambda images: 1 / 0, timeout=10)(GREY)


def test_the_fingerprint_names_the_function() -> None:
    assert CallableBox(halves).fingerprint().startswith(f"python:{__name__}:halves:")
    first, second = (
        CallableBox(function).fingerprint() for function in (lambda x: x + 1, lambda x: x + 2)
    )
    assert first != second
    assert CallableBox(Forest()).fingerprint() == f"python:{__name__}:Forest"
    assert CallableBox(np.asarray).fingerprint() == "python:numpy:asarray"


def test_a_function_has_no_module() -> None:
    with pytest.raises(
        BoxError, match=r"CallableBox\(halves\) shows only probabilities.*take a PyTorch module"
    ):
        _ = CallableBox(halves).module

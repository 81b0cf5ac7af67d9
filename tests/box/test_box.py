"""What a box accepts as an answer, and the sentence it refuses the rest with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from soda_tta.box import CallableBox
from soda_tta.box.box import Wrapper
from soda_tta.box.input import check_images
from soda_tta.box.probabilities import check_probabilities, softmax
from soda_tta.errors import BoxError, ImageError

HALVES = np.full((3, 2), 0.5)
GREY = np.full((3, 3, 4, 4), 0.5, np.float32)


def returning(*answers: object, **options: object) -> CallableBox:
    """A box that gives these answers, one a request, whatever it is asked."""
    remaining = list(answers)
    return CallableBox(lambda images: remaining.pop(0), **options)


REFUSED = {
    "NaN": ([[0.5, 0.5], [np.nan, 1], [0.5, 0.5]], "NaN or infinity .first in row 1.*--mean"),
    "infinity": ([[0.5, 0.5], [0.5, 0.5], [np.inf, 0]], "NaN or infinity .first in row 2"),
    "a float64 too large for float32": (
        [[0.5, 0.5], [1e300, 0], [0.5, 0.5]],
        "NaN or infinity .first in row 1",
    ),
    "logits": (
        [[4, 3.31], [0, 1], [1, 0]],
        r"rows that sum to 7.31; if these are logits, pass --logits",
    ),
    "negative": ([[0.5, 0.5], [1.5, -0.5], [0.5, 0.5]], r"negative numbers \(-0.5\); .*--logits"),
    "rows that sum to 0": (np.zeros((3, 2)), "sum to 0"),
    "too few rows": (HALVES[:2], "2 rows for 3 images"),
    "too many rows": (np.full((4, 2), 0.5), "4 rows for 3 images"),
    "one class": (np.ones((3, 1)), "1 class; a classifier has at least two"),
    "no class": (np.ones((3, 0)), "0 class"),
    "labels": (np.array([1, 0, 1]), r"shape \(3,\) for 3 images; expected \(3, classes\)"),
    "a feature map": (np.full((3, 2, 4, 4), 0.5), r"shape \(3, 2, 4, 4\)"),
    "one number": (0.5, r"shape \(\)"),
    "text": ([["cat", "dog"]] * 3, "<U3 values; probabilities are numbers"),
    "truth values": (HALVES > 0, "bool values"),
    "complex numbers": (HALVES * 1j, "complex128 values"),
    "objects": ([{"cat": 1.0}] * 3, "object values"),
    "ragged rows": ([[0.5, 0.5], [1.0], [0.5, 0.5]], "ValueError"),
    "nothing": (None, "object values"),
}


@pytest.mark.parametrize(("answer", "sentence"), REFUSED.values(), ids=REFUSED)
def test_an_unusable_answer_is_a_box_error_that_says_what_came_back(
    answer: object, sentence: str
) -> None:
    with pytest.raises(BoxError, match=sentence):
        returning(answer)(GREY)


ACCEPTED = {
    "float64": HALVES,
    "float16": HALVES.astype(np.float16),
    "lists": HALVES.tolist(),
    "whole numbers": np.array([[0, 1], [1, 0], [1, 0]]),
    "trailing ones": HALVES[:, :, None, None],
    "sums rounded to three digits": np.array([[0.333, 0.333, 0.333]] * 3),
}


@pytest.mark.parametrize("answer", ACCEPTED.values(), ids=ACCEPTED)
def test_probabilities_come_back_as_float32_rows(answer: object) -> None:
    got = returning(answer)(GREY)
    assert got.dtype == np.float32 and got.ndim == 2
    np.testing.assert_allclose(got, np.asarray(answer, np.float32).reshape(got.shape), atol=1e-6)


@pytest.mark.parametrize(
    ("total", "accepted"), [(0.991, True), (1.009, True), (0.98, False), (1.02, False)]
)
def test_a_row_may_miss_one_by_a_hundredth(total: float, accepted: bool) -> None:
    answer = np.array([[total - 0.25, 0.25]])
    if accepted:
        assert check_probabilities(answer, 1, None, False).shape == (1, 2)
    else:
        with pytest.raises(BoxError, match="sum to"):
            check_probabilities(answer, 1, None, False)


def test_rounding_below_zero_is_clipped() -> None:
    assert check_probabilities(np.array([[1 + 5e-7, -5e-7]]), 1, None, False).tolist() == [
        [1.0, 0.0]
    ]


def test_the_number_of_classes_cannot_change_between_calls() -> None:
    box = returning(HALVES, np.full((3, 4), 0.25))
    box(GREY)
    assert box.classes == 2
    with pytest.raises(BoxError, match="4 classes where it returned 2 before"):
        box(GREY)


def test_the_number_of_classes_cannot_change_between_the_requests_of_one_call() -> None:
    with pytest.raises(BoxError, match="3 classes where it returned 2 before"):
        returning(HALVES[:2], np.full((1, 3), 1 / 3), batch=2)(GREY)


def test_logits_become_probabilities_by_the_softmax() -> None:
    # e^0 : e^ln3 is 1 : 3; a thousand more everywhere changes nothing
    answer = [[0, np.log(3)], [1000, 1000 + np.log(3)], [-1e4, 1e4]]
    got = returning(answer, logits=True)(GREY)
    np.testing.assert_allclose(got, [[0.25, 0.75], [0.25, 0.75], [0, 1]], atol=1e-4)


def test_nan_among_logits_is_refused_too() -> None:
    with pytest.raises(BoxError, match="NaN"):
        returning(HALVES * np.nan, logits=True)(GREY)


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=2),
        elements=st.floats(-1e4, 1e4, width=32),
    )
)
def test_the_softmax_of_anything_finite_is_accepted_as_probabilities(logits: np.ndarray) -> None:
    check_probabilities(softmax(logits), len(logits), logits.shape[1], False)


def test_no_images_get_no_rows_and_are_not_asked(model) -> None:
    box = CallableBox(model)
    assert box(GREY[:0]).shape == (0, 0)
    box(GREY)
    assert box(GREY[:0]).shape == (0, 4)
    assert model.asked == 3


def test_a_call_is_split_into_requests_of_at_most_batch_images(model, images) -> None:
    sizes = []
    box = CallableBox(lambda piece: sizes.append(len(piece)) or model(piece), batch=20)
    together = box(images)
    assert sizes == [20, 20, 10]
    np.testing.assert_allclose(together, model(images), atol=1e-6)


def test_one_image_alone_gets_the_answer_it_gets_in_a_batch(box, images) -> None:
    alone = np.concatenate([box(image[None]) for image in images])
    np.testing.assert_allclose(alone, box(images), atol=1e-6)


NOT_IMAGES = {
    "bytes": (
        np.zeros((1, 3, 4, 4), np.uint8),
        "float32 images in .0, 1.; got uint8: divide bytes by 255",
    ),
    "float64": (np.zeros((1, 3, 4, 4)), "got float64"),
    "channels last": (
        np.zeros((1, 4, 4, 3), np.float32),
        r"\(n, 3, height, width\); got \(1, 4, 4, 3\)",
    ),
    "grey": (np.zeros((1, 1, 4, 4), np.float32), r"got \(1, 1, 4, 4\)"),
    "one image": (np.zeros((3, 4, 4), np.float32), r"got \(3, 4, 4\)"),
    "above one": (np.full((1, 3, 4, 4), 255, np.float32), r"pixels in \[0, 1\]; got 255 .. 255"),
    "below zero": (np.full((1, 3, 4, 4), -0.1, np.float32), r"got -0.1 .. -0.1"),
    "NaN": (np.full((1, 3, 4, 4), np.nan, np.float32), "got nan .. nan"),
}


@pytest.mark.parametrize(("images", "sentence"), NOT_IMAGES.values(), ids=NOT_IMAGES)
def test_what_is_not_an_image_never_reaches_the_model(
    images: np.ndarray, sentence: str, model
) -> None:
    with pytest.raises(ImageError, match=sentence):
        CallableBox(model)(images)
    assert model.asked == 0


def test_images_are_handed_on_without_a_copy() -> None:
    assert check_images(GREY) is GREY


def test_a_wrapper_is_what_it_wraps(box, images) -> None:
    box.logits, box.batch = True, 7
    wrapped = Wrapper(Wrapper(box))
    np.testing.assert_array_equal(wrapped(images), box(images))
    for fact in ("input", "logits", "batch", "classes", "quantum"):
        assert getattr(wrapped, fact) == getattr(box, fact), fact
    assert wrapped.fingerprint() == box.fingerprint()
    assert repr(wrapped) == f"Wrapper(Wrapper({box!r}))"

"""What a box accepts as a response, and the error for everything else."""

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


def returning(*responses: object, **options: object) -> CallableBox:
    """A box that returns these, one per request, whatever the images are."""
    remaining = list(responses)
    return CallableBox(lambda images: remaining.pop(0), **options)


REFUSED = {
    "NaN": (
        [[0.5, 0.5], [np.nan, 1], [0.5, 0.5]],
        "NaN or infinity .first in row 1.*check its normalisation: mean, std",
    ),
    "infinity": ([[0.5, 0.5], [0.5, 0.5], [np.inf, 0]], "NaN or infinity .first in row 2"),
    "a float64 too large for float32": (
        [[0.5, 0.5], [1e300, 0], [0.5, 0.5]],
        "NaN or infinity .first in row 1",
    ),
    "logits": (
        [[4, 3.31], [0, 1], [1, 0]],
        r"rows that sum to 7.31; if these are logits, pass logits=True",
    ),
    "negative": ([[0.5, 0.5], [1.5, -0.5], [0.5, 0.5]], r"negative values \(-0.5\); .*logits=True"),
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


@pytest.mark.parametrize(("response", "message"), REFUSED.values(), ids=REFUSED)
def test_an_unusable_response_raises_an_error_that_says_what_came_back(
    response: object, message: str
) -> None:
    with pytest.raises(BoxError, match=message):
        returning(response)(GREY)


ACCEPTED = {
    "float64": HALVES,
    "float16": HALVES.astype(np.float16),
    "lists": HALVES.tolist(),
    "whole numbers": np.array([[0, 1], [1, 0], [1, 0]]),
    "trailing ones": HALVES[:, :, None, None],
    "sums rounded to three digits": np.array([[0.333, 0.333, 0.333]] * 3),
}


@pytest.mark.parametrize("response", ACCEPTED.values(), ids=ACCEPTED)
def test_probabilities_come_back_as_float32_rows(response: object) -> None:
    got = returning(response)(GREY)
    assert got.dtype == np.float32 and got.ndim == 2
    np.testing.assert_allclose(got, np.asarray(response, np.float32).reshape(got.shape), atol=1e-6)


@pytest.mark.parametrize(
    ("total", "accepted"), [(0.991, True), (1.009, True), (0.98, False), (1.02, False)]
)
def test_a_row_sum_may_differ_from_one_by_a_hundredth(total: float, accepted: bool) -> None:
    response = np.array([[total - 0.25, 0.25]])
    if accepted:
        assert check_probabilities(response, 1, None, False).shape == (1, 2)
    else:
        with pytest.raises(BoxError, match="sum to"):
            check_probabilities(response, 1, None, False)


def test_rounding_below_zero_is_clipped() -> None:
    response = np.array([[1 + 5e-7, -5e-7]])
    assert check_probabilities(response, 1, None, False).tolist() == [[1.0, 0.0]]


def test_the_number_of_classes_cannot_change_between_calls() -> None:
    box = returning(HALVES, np.full((3, 4), 0.25))
    box(GREY)
    assert box.classes == 2
    with pytest.raises(BoxError, match="4 classes; earlier it returned 2"):
        box(GREY)


def test_the_number_of_classes_cannot_change_between_the_requests_of_one_call() -> None:
    with pytest.raises(BoxError, match="3 classes; earlier it returned 2"):
        returning(HALVES[:2], np.full((1, 3), 1 / 3), batch=2)(GREY)


def test_logits_become_probabilities_by_the_softmax() -> None:
    # e^0 : e^ln3 is 1 : 3; adding a constant to a row changes nothing
    response = [[0, np.log(3)], [1000, 1000 + np.log(3)], [-1e4, 1e4]]
    got = returning(response, logits=True)(GREY)
    np.testing.assert_allclose(got, [[0.25, 0.75], [0.25, 0.75], [0, 1]], atol=1e-4)


def test_nan_among_logits_is_refused() -> None:
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


def test_no_images_give_no_rows_and_no_query(model) -> None:
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


def test_an_image_gets_the_same_response_alone_and_in_a_batch(box, images) -> None:
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


@pytest.mark.parametrize(("images", "message"), NOT_IMAGES.values(), ids=NOT_IMAGES)
def test_invalid_images_never_reach_the_model(images: np.ndarray, message: str, model) -> None:
    with pytest.raises(ImageError, match=message):
        CallableBox(model)(images)
    assert model.asked == 0


def test_valid_images_are_not_copied() -> None:
    assert check_images(GREY) is GREY


def test_the_ends_of_the_range_are_valid() -> None:
    ends = np.tile(np.array([-0.0, 0, 1e-45, 1], np.float32), (1, 3, 4, 1))
    assert check_images(ends) is ends
    with pytest.raises(ImageError):
        check_images(np.nextafter(ends, np.float32(2)))


def test_a_wrapper_behaves_like_the_box_inside(box, images) -> None:
    box.logits = True
    box.partial = True
    box.batch = 7
    wrapped = Wrapper(Wrapper(box))
    np.testing.assert_array_equal(wrapped(images), box(images))
    for fact in ("input", "declared", "logits", "partial", "batch", "classes", "quantum"):
        assert getattr(wrapped, fact) == getattr(box, fact), fact
    assert wrapped.fingerprint() == box.fingerprint()
    assert repr(wrapped) == f"Wrapper(Wrapper({box!r}))"

"""Our images as a model expects them, with every number worked out by hand."""

import numpy as np
import pytest
from PIL import Image

from soda_tta.box import Input
from soda_tta.box.input import input_from_shape
from soda_tta.errors import BoxError

RED_GREEN_BLUE = (1.0, 0.5, 0.2)
ONE_PIXEL = np.array(RED_GREEN_BLUE, np.float32).reshape(1, 3, 1, 1)

PREPARED = {
    "nothing stated": ({}, [1, 0.5, 0.2]),
    "pixel range": ({"pixel_range": 255}, [255, 127.5, 51]),
    "mean": ({"mean": (0.5, 0.25, 0.1)}, [0.5, 0.25, 0.1]),
    "std": ({"std": (0.5, 0.25, 0.1)}, [2, 2, 2]),
    "mean and std": ({"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.1)}, [2, 0, -3]),
    "one mean for all channels": ({"mean": (0.2,)}, [0.8, 0.3, 0]),
    "a plain number for all channels": ({"mean": 0.2, "std": 0.1}, [8, 3, 0]),
    "mean and std in bytes": (
        {"pixel_range": 255, "mean": (55, 27.5, 1), "std": (100, 50, 10)},
        [2, 2, 5],
    ),
    "BGR": ({"channels": "BGR"}, [0.2, 0.5, 1]),
    # the mean belongs to the channels in the model's order: 0.2 is taken from blue
    "BGR with a mean": ({"channels": "BGR", "mean": (0.2, 0, 0)}, [0, 0.5, 1]),
    # 0.299 + 0.587 / 2 + 0.114 / 5
    "grey": ({"channels": "L"}, [0.6153]),
    "grey with a mean": ({"channels": "L", "mean": (0.1153,), "std": (0.5,)}, [1]),
    "float16": ({"dtype": "float16"}, [1, 0.5, np.float16(0.2)]),
    # 127.5 rounds to the even neighbour
    "bytes": ({"dtype": "uint8"}, [255, 128, 51]),
    "bytes are clipped": (
        {"dtype": "uint8", "pixel_range": 255, "mean": (-10, 0, 60)},
        [255, 128, 0],
    ),
}


@pytest.mark.parametrize(("stated", "expected"), PREPARED.values(), ids=PREPARED)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_pixels_are_prepared_as_stated(stated: dict, expected: list, layout: str) -> None:
    input = Input(**stated, layout=layout)
    got = input.prepare(ONE_PIXEL)
    assert got.shape == ((1, len(expected), 1, 1) if layout == "NCHW" else (1, 1, 1, len(expected)))
    assert got.dtype == input.dtype and got.flags.c_contiguous
    np.testing.assert_allclose(got.ravel(), expected, atol=1e-4)


def test_channels_last_keeps_rows_and_columns() -> None:
    images = np.random.default_rng(0).random((2, 3, 4, 5), dtype=np.float32)
    got = Input(layout="NHWC").prepare(images)
    assert got.shape == (2, 4, 5, 3)
    assert all(got[n, y, x, c] == images[n, c, y, x] for n, c, y, x in np.ndindex(images.shape))


def test_resizing_is_pillows_bilinear_in_float() -> None:
    # every second pixel is white: halving the width averages with the weights 1/8 3/8 3/8 1/8
    row = np.array([0, 1, 0, 1, 0, 1, 0, 1], np.float32)
    images = np.broadcast_to(row, (1, 3, 4, 8))
    got = Input(size=(4, 4)).prepare(images)
    assert got.shape == (1, 3, 4, 4)
    np.testing.assert_allclose(got[0, :, :, 1:3], 0.5, atol=1e-6)


def test_resizing_takes_height_then_width_and_agrees_with_pillow_on_bytes() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)
    ours = Input(size=(4, 6)).prepare(picture.transpose(2, 0, 1)[None].astype(np.float32) / 255)
    theirs = np.asarray(Image.fromarray(picture).resize((6, 4), Image.Resampling.BILINEAR))
    assert ours.shape == (1, 3, 4, 6)
    np.testing.assert_allclose(
        ours[0].transpose(1, 2, 0) * 255, theirs, atol=1.01
    )  # they round twice


def test_images_of_the_right_size_are_not_resized() -> None:
    images = np.random.default_rng(0).random((2, 3, 5, 4), dtype=np.float32)
    np.testing.assert_array_equal(Input(size=(5, 4)).prepare(images), images)


@pytest.mark.parametrize("size", [8, (8, 8), [8, 8]])
def test_a_size_is_one_number_or_height_and_width(size: object) -> None:
    assert Input(size=size).size == (8, 8)


@pytest.mark.parametrize("stated", [{}, {"channels": "BGR"}, {"mean": (0.5,)}, {"layout": "NHWC"}])
def test_a_model_may_write_into_its_input(stated: dict) -> None:
    images = np.full((1, 3, 4, 4), 0.5, np.float32)
    Input(**stated).prepare(images)[:] = 9
    assert (images == 0.5).all()


BAD = {
    "layout": ({"layout": "CHWN"}, "choose NCHW or NHWC"),
    "channels": ({"channels": "RGBA"}, "choose RGB, BGR or L"),
    "dtype": ({"dtype": "int64"}, "element type; choose float32, float16, uint8 or int8"),
    "pixel range": ({"pixel_range": 0}, "it must be positive; use 1 or 255"),
    "pixel range NaN": ({"pixel_range": float("nan")}, "it must be positive"),
    "two means": ({"mean": (1, 2)}, "mean has 2 values; pass one, or one per channel"),
    "four stds": ({"std": (1, 1, 1, 1)}, "std has 4 values"),
    "zero std": ({"std": (1, 0, 1)}, "must be positive"),
    "no size": ({"size": (0, 8)}, "size"),
    "three sizes": ({"size": (8, 8, 8)}, "size"),
}


@pytest.mark.parametrize(("stated", "message"), BAD.values(), ids=BAD)
def test_an_invalid_fact_is_refused(stated: dict, message: str) -> None:
    with pytest.raises(BoxError, match=message):
        Input(**stated)


SHAPES = {
    "channels first": (
        ["n", 3, 32, 48],
        {},
        {"layout": "NCHW", "size": (32, 48), "channels": "RGB"},
    ),
    "channels last": (
        [None, 32, 48, 3],
        {},
        {"layout": "NHWC", "size": (32, 48), "channels": "RGB"},
    ),
    "grey": (["n", 1, 28, 28], {}, {"layout": "NCHW", "size": (28, 28), "channels": "L"}),
    "grey, channels last": (["n", 28, 28, 1], {}, {"layout": "NHWC", "channels": "L"}),
    "any size": (["n", 3, "h", "w"], {}, {"layout": "NCHW", "size": None}),
    "any size, channels last": (["n", "h", "w", 3], {}, {"layout": "NHWC", "size": None}),
    "-1 is any": ([-1, 3, -1, -1], {}, {"size": None}),
    "all free": (["n", "a", "b", "c"], {}, {"layout": "NCHW", "size": None}),
    "all free, layout stated": (["n", "a", "b", "c"], {"layout": "NHWC"}, {"layout": "NHWC"}),
    "three columns": (["n", 3, 5, 3], {}, {"layout": "NCHW", "size": (5, 3)}),
    "channels stated": (["n", 3, 8, 8], {"channels": "BGR"}, {"channels": "BGR"}),
}


@pytest.mark.parametrize(("shape", "stated", "expected"), SHAPES.values(), ids=SHAPES)
def test_layout_size_and_channels_are_read_from_a_declared_shape(
    shape: list, stated: dict, expected: dict
) -> None:
    input = input_from_shape(shape, "float32", **stated)
    assert {name: getattr(input, name) for name in expected} == expected


def test_bytes_have_the_range_255_unless_stated() -> None:
    assert input_from_shape(["n", 3, 8, 8], "uint8").pixel_range == 255
    assert input_from_shape(["n", 3, 8, 8], "uint8", pixel_range=100).pixel_range == 100
    assert input_from_shape(["n", 3, 8, 8], "float32").pixel_range == 1


BAD_SHAPES = {
    "flat": (["n", 784], {}, r"shape \['n', 784\]; an image model takes four dimensions"),
    "four channels": (["n", 4, 8, 8], {}, r"takes 4 channels \(NCHW\)"),
    "a layout that contradicts the shape": (
        ["n", 3, 8, 8],
        {"layout": "NHWC"},
        r"takes 8 channels \(NHWC\)",
    ),
    "a type that contradicts the model": (["n", 3, 8, 8], {"dtype": "uint8"}, "takes float32"),
}


@pytest.mark.parametrize(("shape", "stated", "message"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_a_shape_that_is_not_of_images_is_refused(shape: list, stated: dict, message: str) -> None:
    with pytest.raises(BoxError, match=message):
        input_from_shape(shape, "float32", **stated)


def test_only_bytes_have_a_smallest_pixel_step() -> None:
    assert Input(dtype="uint8", pixel_range=255).quantum == 1 / 255
    assert Input().quantum is None


def test_a_card_gives_back_the_same_input() -> None:
    input = Input(
        size=(8, 9), layout="NHWC", channels="BGR", pixel_range=255, mean=(1, 2, 3), std=(4, 5, 6)
    )
    assert Input(**input.card()) == input

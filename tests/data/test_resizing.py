"""The one resize-and-crop: its pixels, its rounding, and the sentence on the card."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta.data.resizing import Resize, check_size
from soda_tta.errors import ImageError

RANDOM = np.random.default_rng(0)
sides = st.integers(1, 90)
sizes = st.tuples(sides, sides)


def picture(height: int, width: int) -> Image.Image:
    return Image.fromarray(RANDOM.integers(0, 256, (height, width, 3), np.uint8))


def test_without_a_size_images_stay_as_they_are() -> None:
    image = picture(30, 50)
    assert Resize()(image) is image


@given(height=sides, width=sides, size=sizes)
@settings(deadline=None, max_examples=60)
def test_any_image_gets_the_size_and_a_second_time_changes_nothing(
    height: int, width: int, size: tuple[int, int]
) -> None:
    for resize in (Resize(size), Resize.imagenet(size)):
        once = resize(picture(height, width))
        assert (once.height, once.width) == size
        np.testing.assert_array_equal(np.asarray(resize(once)), np.asarray(once))


@pytest.mark.parametrize(
    ("width", "height", "resized", "left", "top"),
    [
        (400, 300, (341, 256), 58, 16),  # 341.3 is truncated; 58.5 is rounded to even
        (300, 400, (256, 341), 16, 58),
        (290, 300, (256, 264), 16, 20),  # 264.8 is truncated
        (500, 500, (256, 256), 16, 16),
        (100, 50, (512, 256), 144, 16),  # small images are enlarged
    ],
)
def test_imagenet_images_are_rounded_as_torchvision_rounds_them(
    width: int, height: int, resized: tuple[int, int], left: int, top: int
) -> None:
    image = picture(height, width)
    expected = image.resize(resized, Image.Resampling.BILINEAR)
    expected = expected.crop((left, top, left + 224, top + 224))
    np.testing.assert_array_equal(np.asarray(Resize.imagenet()(image)), np.asarray(expected))


def test_a_rectangle_is_covered_in_both_directions() -> None:
    image = picture(100, 400)
    expected = image.resize((240, 60), Image.Resampling.BILINEAR).crop((70, 0, 170, 60))
    np.testing.assert_array_equal(np.asarray(Resize((60, 100))(image)), np.asarray(expected))
    tall = Resize((10, 100))(picture(400, 50))
    assert tall.size == (100, 10)


@pytest.mark.parametrize(
    ("resize", "sentence"),
    [
        (Resize(), "as they are"),
        (
            Resize((32, 32)),
            "shorter side resized to 32 (bilinear), centre crop of 32x32; 32x32 as they are",
        ),
        (
            Resize.imagenet((112, 112)),
            "shorter side resized to 128 (bilinear), centre crop of 112x112; 112x112 as they are",
        ),
        (
            Resize((224, 320)),
            "resized to cover 320x224 (bilinear), centre crop of 320x224; 320x224 as they are",
        ),
    ],
)
def test_the_resize_is_stated_in_a_sentence(resize: Resize, sentence: str) -> None:
    assert str(resize) == sentence


def test_a_size_is_one_number_or_two() -> None:
    assert check_size(8) == (8, 8) and check_size([8, 9]) == (8, 9)
    for size in (0, (8, -1), (1, 2, 3)):
        with pytest.raises(ImageError, match="is not a valid size; pass one number, or"):
            check_size(size)


def test_a_resize_is_a_value() -> None:
    assert Resize((8, 8)) == Resize((8, 8)) != Resize.imagenet((8, 8))
    assert repr(Resize((8, 8))) == "Resize(size=(8, 8), cover=None)"

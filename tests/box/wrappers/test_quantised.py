"""What an 8-bit or JPEG transport does to an image."""

import io

import numpy as np
import pytest
from PIL import Image

from soda_tta.box import CallableBox, Input, Quantised
from soda_tta.errors import BoxError


def through(images: np.ndarray, **options: object) -> np.ndarray:
    """What the model receives."""
    received = []
    Quantised(
        CallableBox(lambda batch: received.append(batch) or np.full((len(batch), 2), 0.5)),
        **options,
    )(images)
    return received[0]


def pixels(*values: float) -> np.ndarray:
    return np.repeat(np.array(values, np.float32), 3).reshape(-1, 3, 1, 1)


@pytest.mark.parametrize(
    ("bits", "value", "received"),
    [
        (8, 0.5, 128 / 255),  # 127.5 goes to the even neighbour
        (8, 0.1, 26 / 255),  # 25.5 in float32 is a little more
        (8, 0.3, 76 / 255),  # 76.5
        (8, 0.0, 0.0),
        (8, 1.0, 1.0),
        (1, 0.4, 0.0),
        (1, 0.6, 1.0),
        (2, 0.5, 2 / 3),  # 1.5 of the levels 0 1 2 3
        (4, 0.5, 8 / 15),
        (16, 0.5, 32768 / 65535),
    ],
)
def test_a_pixel_is_rounded_to_the_nearest_level(bits: int, value: float, received: float) -> None:
    np.testing.assert_allclose(through(pixels(value), bits=bits), pixels(received), atol=1e-7)


def test_eight_bit_images_pass_unchanged() -> None:
    images = (
        (np.arange(256, dtype=np.float32) / np.float32(255)).reshape(1, 1, 16, 16).repeat(3, axis=1)
    )
    np.testing.assert_array_equal(through(images), images)


def test_a_change_below_half_a_step_is_lost(images: np.ndarray) -> None:
    on_levels = np.rint(images * 255).astype(np.float32) / np.float32(255)
    shaken = np.clip(on_levels + np.float32(0.4 / 255), 0, 1)
    np.testing.assert_array_equal(through(shaken), through(on_levels))


def test_jpeg_does_what_pillow_does(images: np.ndarray) -> None:
    received = through(images[:3], jpeg=80)
    for image, got in zip(images, received, strict=False):
        buffer = io.BytesIO()
        Image.fromarray(np.rint(image * 255).astype(np.uint8).transpose(1, 2, 0)).save(
            buffer, "JPEG", quality=80
        )
        np.testing.assert_allclose(
            got, np.asarray(Image.open(buffer)).transpose(2, 0, 1) / 255, atol=1e-6
        )


def test_jpeg_loses_more_at_a_lower_quality(images: np.ndarray) -> None:
    losses = [np.abs(through(images, jpeg=quality) - images).mean() for quality in (100, 80, 20)]
    assert 1 / 255 / 4 < losses[0] < losses[1] < losses[2]


@pytest.mark.parametrize("jpeg", [None, 90])
def test_no_images_stay_no_images(jpeg: int | None, box) -> None:
    assert len(Quantised(box, jpeg=jpeg)(np.zeros((0, 3, 4, 4), np.float32))) == 0


def test_the_smallest_step_is_that_of_the_coarsest_transport(box) -> None:
    assert Quantised(box).quantum == 1 / 255
    assert Quantised(box, bits=4).quantum == 1 / 15
    assert Quantised(Quantised(box, bits=4), bits=8).quantum == 1 / 15
    bytes_in = CallableBox(box.function, input=Input(dtype="uint8", pixel_range=255))
    assert Quantised(bytes_in, bits=16).quantum == 1 / 255


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ({"bits": 0}, "0 is not a valid number of bits per channel; choose 1 to 16"),
        ({"bits": 17}, "17 is not a valid number of bits per channel; choose 1 to 16"),
        ({"jpeg": 0}, "0 is not a valid JPEG quality; choose 1 to 100"),
        ({"jpeg": 101}, "101 is not a valid JPEG quality; choose 1 to 100"),
        ({"bits": 4, "jpeg": 80}, "JPEG has 8 bits per channel, not 4"),
    ],
)
def test_invalid_bits_and_qualities_are_refused(invalid: dict, message: str, box) -> None:
    with pytest.raises(BoxError, match=message):
        Quantised(box, **invalid)


def test_the_same_model_behind_another_transport_has_another_fingerprint(box) -> None:
    boxes = (box, Quantised(box), Quantised(box, bits=4), Quantised(box, jpeg=80))
    assert len({each.fingerprint() for each in boxes}) == 4


def test_the_repr_can_be_pasted(box) -> None:
    assert repr(Quantised(box, jpeg=80)) == f"Quantised({box!r}, bits=8, jpeg=80)"

"""What of an image reaches the model: cropped, turned and mirrored, by hand."""

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import Input
from soda_tta.box.view import View, turned
from soda_tta.data import open_images
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import BoxError

# 1 2 3
# 4 5 6
PICTURE = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
TURNED = {
    (0, False): [[1, 2, 3], [4, 5, 6]],
    (90, False): [[4, 1], [5, 2], [6, 3]],
    (180, False): [[6, 5, 4], [3, 2, 1]],
    (270, False): [[3, 6], [2, 5], [1, 4]],
    (0, True): [[3, 2, 1], [6, 5, 4]],
    (90, True): [[1, 4], [2, 5], [3, 6]],
}


@pytest.mark.parametrize(("turn", "mirror"), TURNED)
def test_images_are_turned_clockwise_and_then_mirrored(turn: int, mirror: bool) -> None:
    got = turned(PICTURE[None, None], turn, mirror)[0, 0]
    assert got.tolist() == TURNED[turn, mirror]
    images = np.repeat(PICTURE[None, None] / 6, 3, axis=1)
    prepared = Input(turn=turn, mirror=mirror).prepare(images)
    np.testing.assert_allclose(prepared[0, 0] * 6, TURNED[turn, mirror], rtol=1e-6)


def test_a_crop_keeps_the_centre_and_the_aspect_ratio() -> None:
    # columns 0 to 7 hold their number; the centre window of 4 columns is 2 to 5
    wide = np.tile(np.arange(8, dtype=np.float32), (1, 3, 4, 1))
    np.testing.assert_allclose(View((4, 4), crop=1)(wide)[0, 0, 0], [2, 3, 4, 5])
    # half of it, columns 3 and 4 twice as large: new pixels lie a quarter beside the old ones
    np.testing.assert_allclose(View((4, 4), crop=0.5)(wide)[0, 0, 0], [2.75, 3.25, 3.75, 4.25])
    np.testing.assert_allclose(View((4, 4))(wide)[0, 0, 0].mean(), 3.5, atol=1e-5)


def test_images_of_the_models_size_are_not_cropped() -> None:
    images = np.random.default_rng(0).random((1, 3, 4, 4), np.float32)
    np.testing.assert_array_equal(Input(size=4, crop=0.5).prepare(images), images)


def test_images_on_their_side_are_fitted_before_they_are_turned() -> None:
    input = Input(size=(2, 6), turn=90)
    assert input.view == View((6, 2))
    tall = np.random.default_rng(0).random((5, 24, 8, 3), np.float32)
    small = at_working_size(open_images(tall), input.view)
    assert small.size == (6, 2)
    np.testing.assert_array_equal(input.prepare(small[:]), input.prepare(open_images(tall)[:]))


def test_the_working_size_and_the_card_know_the_crop() -> None:
    frames = open_images(np.zeros((2, 72, 128, 3), np.uint8))
    cropped = at_working_size(frames, View((24, 24), crop=0.875))
    text = (
        "128x72 resized to the model's 24x24 (bilinear, centre crop of 0.875 of the shorter side)"
    )
    assert cropped.card()["resize"] == text


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"crop": 0}, "0 is not a valid crop"),
        ({"crop": 1.5}, "above 0 and at most 1"),
        ({"turn": 45}, "45 is not a valid turn; choose 0, 90, 180 or 270"),
    ],
)
def test_an_invalid_view_is_refused(stated: dict, message: str) -> None:
    with pytest.raises(BoxError, match=message):
        Input(**stated)


def test_the_background_class_is_left_out() -> None:
    rows = np.array([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0]])
    box = load_box(lambda images: rows[: len(images)], background=True)
    for _ in range(2):  # the number of classes is also right in the second response
        got = box(np.zeros((2, 3, 4, 4), np.float32))
        np.testing.assert_allclose(got, [[0.8, 0.2], [0.5, 0.5]])
    assert box.classes == 2 and box.card()["background"]


def test_two_classes_cannot_have_a_background() -> None:
    box = load_box(lambda images: np.full((len(images), 2), 0.5), background=True)
    with pytest.raises(BoxError, match="leave out background"):
        box(np.zeros((1, 3, 4, 4), np.float32))


def test_gradients_see_the_same_view() -> None:
    import torch

    from soda_tta.box.backends.torch_module import prepared_tensor

    images = np.random.default_rng(0).random((2, 3, 4, 6), np.float32)
    input = Input(size=(6, 4), turn=270, mirror=True, channels="BGR", mean=0.5)
    tensor = prepared_tensor(input, torch.from_numpy(images))
    np.testing.assert_allclose(tensor.numpy(), input.prepare(images), atol=1e-6)

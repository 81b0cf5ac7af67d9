"""The numbers that tell conditions apart: of an image alone, whatever else is in its batch."""

import warnings

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.conditions.statistics import FLOOR, NAMES, mean, measured, quantile, statistics
from soda_tta.errors import ImageError

SIDES = st.integers(8, 130)


def pictures(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Noise, squares, a nearly flat picture, a flat one, black and white: in bytes and between."""
    random = np.random.default_rng(seed)
    squares = random.random((3, 3, -(-height // 5), -(-width // 5))).repeat(5, 2).repeat(5, 3)
    between = np.concatenate(
        [
            random.random((2, 3, height, width)),
            squares[:, :, :height, :width],
            0.5 + 0.01 * random.random((1, 3, height, width)),
            np.full((1, 3, height, width), 0.4),
            random.random((1, 3, height, width)) > 0.5,
        ]
    ).astype(np.float32)
    bytes_ = np.rint(between * 255).astype(np.float32) / np.float32(255)
    return np.concatenate([between, bytes_])


def column(name: str, images: np.ndarray) -> np.ndarray:
    return statistics(images)[:, NAMES.index(name)]


@settings(max_examples=8, deadline=None)
@given(height=SIDES, width=SIDES, seed=st.integers(0, 99))
def test_an_image_has_the_same_numbers_alone_and_in_a_batch(height, width, seed) -> None:
    images = pictures(height, width, seed)
    together = statistics(images)
    assert np.isfinite(together).all() and together.shape == (len(images), len(NAMES))
    for place in (0, 3, 5, 9):
        np.testing.assert_array_equal(statistics(images[place : place + 1])[0], together[place])


def test_onnx_runtime_computes_the_same_numbers_at_any_size(tmp_path) -> None:
    class Measured(torch.nn.Module):
        def forward(self, images):
            return measured(images)

    path = str(tmp_path / "statistics.onnx")
    axes = {"images": {0: "n", 2: "height", 3: "width"}}
    options = {"dynamo": False, "opset_version": 12, "input_names": ["images"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Measured(), (torch.rand(2, 3, 32, 32),), path, dynamic_axes=axes, **options
        )
    session = onnxruntime.InferenceSession(path)
    for size in [(8, 9), (32, 32), (97, 96), (160, 128)]:
        images = pictures(*size)
        (rows,) = session.run(None, {"images": images})
        np.testing.assert_allclose(rows, statistics(images), atol=1e-6)
        (alone,) = session.run(None, {"images": images[:1]})
        np.testing.assert_array_equal(alone, rows[:1])


def test_means_and_quantiles_by_hand() -> None:
    assert quantile(torch.tensor([[3.0, 1.0, 2.0]]), 1.0) == 3
    assert quantile(torch.tensor([[3.0, 1.0, 2.0, 0.5]]), 0.02) == 0.5
    assert mean(torch.tensor([[0.1, 0.2], [0.3, 0.5]])).tolist() == pytest.approx([0.15, 0.4])
    assert mean(torch.zeros(1, 0)) == 0


def test_numbers_of_a_checkerboard_by_hand() -> None:
    board = np.indices((16, 16)).sum(axis=0) % 2
    image = np.broadcast_to(board, (1, 3, 16, 16)).astype(np.float32)
    # halving it once loses everything: each block of four has the deviation 1/2
    assert column("detail of 1 pixel", image)[0] == pytest.approx(np.log(0.5 + FLOOR))
    assert column("detail of 2 pixels", image)[0] == pytest.approx(np.log(FLOOR))
    assert column("contrast", image)[0] == pytest.approx(np.log(0.5 + FLOOR))
    assert column("noise", image)[0] == pytest.approx(np.log(4 + FLOOR))
    # pixels one and three apart differ by 1, and twice as much in the second difference
    assert column("sharpness", image)[0] == pytest.approx(0)
    assert column("curvature", image)[0] == pytest.approx(np.log((2 + FLOOR) / (1 + FLOOR)))
    assert column("darkest", image)[0] == 0 and column("brightest", image)[0] == 1
    assert column("clipped", image)[0] == pytest.approx(np.log(1 + FLOOR))
    assert column("blocks", image)[0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("width", [8, 12, 16, 33])
def test_blocks_are_steps_at_every_eighth_column(width: int) -> None:
    stripes = np.broadcast_to(np.arange(width) // 8 % 2, (1, 3, 8, width)).astype(np.float32)
    steps = np.abs(np.diff(stripes[0, 0, 0]))
    phases = [steps[phase::8].mean() for phase in range(min(8, width - 1))]
    expected = np.log(max(phases) + FLOOR) - np.log(np.mean(phases) + FLOOR)
    assert column("blocks", stripes)[0] == pytest.approx(expected, abs=1e-5)


def test_large_images_are_measured_in_four_tiles_of_their_own_resolution() -> None:
    image = np.zeros((1, 3, 224, 224), np.float32)
    image[:, :, 32:96, 32:96] = 1  # the first tile: a fifth of the free 160 pixels from the border
    assert column("brightness", image)[0] == pytest.approx(0.25)
    image[:, :, 128:192, 128:192] = 1  # the last one
    assert column("brightness", image)[0] == pytest.approx(0.5)


def test_small_images_are_refused_and_no_image_is_no_row() -> None:
    with pytest.raises(ImageError, match="32x7; conditions are told apart from at least 8 pixels"):
        statistics(np.zeros((1, 3, 7, 32), np.float32))
    assert statistics(np.zeros((0, 3, 8, 8), np.float32)).shape == (0, len(NAMES))

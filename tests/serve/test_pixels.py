"""Tensors of clients to images and back: the inverse of what a client does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.box.input import Input
from soda_tta.serve.pixels import Pixels

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 3, 6, 8)).astype(np.float32) / 255
FACTS = st.fixed_dictionaries(
    {
        "layout": st.sampled_from(["NCHW", "NHWC"]),
        "channels": st.sampled_from(["RGB", "BGR", "L"]),
        "turn": st.sampled_from([0, 90, 180, 270]),
        "mirror": st.booleans(),
    }
)
NUMBERS = st.sampled_from(
    [
        dict(dtype="float32"),
        dict(dtype="float32", pixel_range=255.0),
        dict(dtype="float32", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        dict(dtype="float16", mean=0.5, std=0.5),
        dict(dtype="uint8"),
        dict(dtype="int8"),
        dict(dtype="int8", pixel_range=1.0, mean=0.5, std=0.5, quantisation=(1 / 64, 3)),
    ]
)


@settings(max_examples=60, deadline=None)
@given(FACTS, NUMBERS)
def test_images_of_a_prepared_tensor_are_the_images(facts: dict, numbers: dict) -> None:
    pixels = Pixels("images", Input(**facts, **numbers))
    images = IMAGES.mean(axis=1, keepdims=True).repeat(3, axis=1)
    images = images if facts["channels"] == "L" else IMAGES
    tensor = pixels.input.prepare(images)
    restored = pixels.images(tensor)
    assert restored is not None and restored.dtype == np.float32
    quantum = pixels.input.quantum or 0
    tolerance = 1e-3 if numbers["dtype"] == "float16" else 1e-5
    np.testing.assert_allclose(restored, images, atol=quantum / 2 + tolerance)
    again = pixels.tensor(restored)
    assert again.dtype == tensor.dtype and again.shape == tensor.shape
    difference = np.abs(again.astype(np.float64) - tensor.astype(np.float64)).max()
    assert difference <= 1e-2 * float(numbers.get("pixel_range", 1))


@pytest.mark.parametrize(
    ("facts", "tensor"),
    [
        ({}, np.zeros((2, 3, 8), np.float32)),
        ({}, np.zeros((0, 3, 8, 8), np.float32)),
        ({}, np.zeros((2, 8, 8, 3), np.float32)),
        ({}, np.zeros((2, 1, 8, 8), np.float32)),
        ({}, np.zeros((2, 3, 8, 8), np.float64)),
        ({"size": 9}, np.zeros((2, 3, 8, 8), np.float32)),
        ({}, np.full((2, 3, 8, 8), 255, np.float32)),
        ({}, np.full((2, 3, 8, 8), -1, np.float32)),
        ({}, np.full((2, 3, 8, 8), np.nan, np.float32)),
    ],
)
def test_what_cannot_be_images_of_this_model_is_none(facts, tensor) -> None:
    assert Pixels("images", Input(**facts)).images(tensor) is None


def test_an_overshoot_of_resizing_is_clipped() -> None:
    tensor = np.linspace(-0.05, 1.05, 192, dtype=np.float32).reshape(1, 3, 8, 8)
    images = Pixels("images", Input()).images(tensor)
    assert images is not None and (images.min(), images.max()) == (0, 1)

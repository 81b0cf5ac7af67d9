"""The digits, their haze and the small model: they follow the seed and are what they claim."""

import numpy as np
import pytest

from soda_tta.box import OnnxBox
from soda_tta.data import open_images
from soda_tta.demo import accuracy
from soda_tta.zoo.digits import haze, hazy_digits, load_digits


def test_the_halves_do_not_overlap_and_follow_the_seed() -> None:
    digits = load_digits(seed=0)
    assert len(digits.train) + len(digits.test) == 1797
    assert digits.train.dtype == np.float32 and digits.train.shape[1:] == (3, 16, 16)
    np.testing.assert_array_equal(digits.test, load_digits(seed=0).test)
    assert np.abs(digits.test[:50] - load_digits(seed=1).test[:50]).max() > 0


def test_haze_has_the_stated_veil_contrast_and_noise() -> None:
    flat = np.full((200, 3, 4, 4), 0.5, np.float32)
    hazy = haze(flat, seed=0)
    assert hazy.mean() == pytest.approx(0.6 + 0.2 * 0.5, abs=0.005)
    assert hazy.std() == pytest.approx(0.05, abs=0.005)


def test_the_model_is_good_on_clean_digits_and_poor_on_hazy_ones(tmp_path) -> None:
    model, images = hazy_digits(tmp_path, seed=0)
    digits = load_digits(seed=0)
    box = OnnxBox(model)
    assert accuracy(box(digits.test), digits.test_labels) > 0.9
    hazy = open_images(images)[slice(None)]
    assert hazy.shape == digits.test.shape
    assert accuracy(box(hazy), digits.test_labels) < 0.6

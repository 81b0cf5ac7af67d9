"""What an adaptor takes: floats in [0, 1], and nothing that it would clip without a word."""

import numpy as np
import pytest

from soda_tta import open_images
from soda_tta.adaptors import Bank, Identity
from soda_tta.errors import ImageError

BYTES = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 8), np.uint8)


@pytest.mark.parametrize("adaptor", [Bank().build(), Identity()])
@pytest.mark.parametrize(
    ("images", "message"),
    [
        (BYTES, r"got uint8: pass soda_tta.open_images\(images\)\[:\]"),
        (BYTES.transpose(0, 2, 3, 1) / 255, r"got \(2, 8, 8, 3\)"),
        (BYTES.astype(np.float32), r"pixels in \[0, 1\]; got 0 .. 255"),
        (np.full((1, 3, 8, 8), np.nan, np.float32), "got nan"),
    ],
)
def test_other_pixels_are_refused(adaptor, images, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        adaptor(images)


def test_the_remedy_works() -> None:
    adapted = Bank().build()(open_images(BYTES)[:])
    assert adapted.dtype == np.float32 and 0.1 < adapted.mean() < 0.9
    assert Bank().build()(BYTES / 255.0).dtype == np.float32  # float64

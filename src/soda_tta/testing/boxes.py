"""`check_box`: whether a box keeps the contract that everything else relies on."""

from __future__ import annotations

import json

import numpy as np

from soda_tta.box import Box
from soda_tta.errors import ImageError
from soda_tta.testing.data import make_images
from soda_tta.types import Array

TOLERANCE = 1e-3  # of a row's sum, and between two responses to the same image


def check_box(box: Box, images: Array | None = None) -> None:
    """Check a box.

    Parameters
    ----------
    box : the box to check; it is asked about 2 n + 1 images.
    images : float32 (n, 3, height, width) in [0, 1], at least 4; by default 12 small ones. Give
        images that the model can take.

    Raises
    ------
    AssertionError
        With what is wrong.

    Examples
    --------
    >>> from soda_tta.testing.data import make_black_box
    >>> check_box(make_black_box())
    """
    images = make_images(12) if images is None else images
    original = images.copy()
    rows = box(images)
    assert isinstance(rows, np.ndarray), f"a box returns a numpy array, not {type(rows).__name__}"
    assert rows.dtype == np.float32, f"probabilities are float32, not {rows.dtype}"
    assert rows.ndim == 2 and len(rows) == len(images), (
        f"a box returns one row per image: {rows.shape} for {len(images)} images"
    )
    assert np.isfinite(rows).all() and rows.min() >= 0, "probabilities are finite and not negative"
    assert np.allclose(rows.sum(axis=1), 1, atol=TOLERANCE), "every row sums to 1"
    assert np.array_equal(images, original), "a box must not change the images it is given"
    assert box.classes == rows.shape[1], "after a response, `classes` is the number of columns"
    check_order(box, images, rows)
    check_edges(box, images)
    check_description(box)


def check_order(box: Box, images: Array, rows: Array) -> None:
    """Rows follow the order of the images, whatever the number of images per call."""
    backwards = box(images[::-1].copy())
    assert np.allclose(backwards[::-1], rows, atol=TOLERANCE), (
        "the response to an image depends on its place in the batch"
    )
    single = box(images[:1])
    assert np.allclose(single, rows[:1], atol=TOLERANCE), (
        "the response to an image depends on its neighbours"
    )


def check_edges(box: Box, images: Array) -> None:
    """No images give no rows; what is not an image is refused before it is sent."""
    assert len(box(images[:0])) == 0, "no images give no rows"
    for wrong in (images[0], images * 255, images.astype(np.float64)):
        try:
            box(wrong)
        except ImageError:
            continue
        raise AssertionError(
            f"images of shape {wrong.shape}, {wrong.dtype}, up to {wrong.max():.3g} must be "
            "refused with ImageError; call check_images first"
        )


def check_description(box: Box) -> None:
    """The card can be written as JSON, and identifies the model."""
    card = box.card()
    json.dumps(card)
    assert card["fingerprint"] == box.fingerprint(), "the card has the box's fingerprint"
    assert box.at_once >= 1, "at_once is at least 1"
    assert repr(box), "a box has a repr"

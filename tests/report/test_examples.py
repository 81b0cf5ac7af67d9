"""Example images on a page."""

import numpy as np
import pytest
from PIL import Image

from soda_tta import adapt
from soda_tta.data import open_images
from soda_tta.errors import ImageError
from soda_tta.report.examples import most_changed

from .conftest import SMALL, check_self_contained


def test_some_of_the_examples_became_wrong() -> None:
    distance = np.linspace(1, 2, 1000)
    before = np.arange(1000) % 10
    after = (before + 1) % 10
    harmed = np.arange(1000) < 50
    chosen = most_changed(distance, before, after, harmed)
    assert len(set(chosen.tolist())) == 12 and harmed[chosen].sum() == 4
    pairs = list(zip(before[chosen[:8]], after[chosen[:8]], strict=True))
    assert max(pairs.count(pair) for pair in pairs) <= 2 and chosen[0] == 999
    assert len(most_changed(distance[:1], before[:1], after[:1])) == 1


def test_large_images_keep_the_page_small(tmp_path) -> None:
    # noise is the worst case for JPEG
    pictures = np.random.default_rng(0).integers(0, 256, (12, 300, 400, 3), np.uint8)

    def model(images):
        mean = images.mean((1, 2, 3))
        return np.stack([mean, 1 - mean], 1)

    run = adapt(pictures, model, method="soda", epochs=1, width=2, batch=12)
    check_self_contained(run.report(tmp_path / "page.html", images=pictures).read_text())


def test_images_of_another_run_are_refused(run, images, tmp_path) -> None:
    for others, message in (
        (images[:49], "49 images"),
        (images[:, :, :7], "of 8x7"),
        (images[::-1], "pixels are different"),
    ):
        with pytest.raises(ImageError, match=message):
            run.report(tmp_path / "page.html", images=others)
    assert not (tmp_path / "page.html").exists()


def test_files_are_resized_as_they_were_for_the_run(tmp_path, model) -> None:
    folder = tmp_path / "night"
    folder.mkdir()
    for number in range(4):
        pixels = np.random.default_rng(number).integers(0, 256, (12, 20, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    run = adapt(open_images(folder, 8), model, method="soda", **SMALL)
    assert "<img" in run.report(tmp_path / "page.html", images=folder).read_text()

"""Large files are decoded on all cores: the same pixels in the same order, and the same errors."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta.data import lazy
from soda_tta.data.lazy import FileImages
from soda_tta.errors import ImageError


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> list[Path]:
    """Files of different colours and depths; all count as large."""
    monkeypatch.setattr(lazy, "PARALLEL_PIXELS", 1)
    monkeypatch.setattr(lazy, "AT_ONCE", 4)
    monkeypatch.setattr(lazy.os, "cpu_count", lambda: 3)
    paths = [tmp_path / f"{number}.png" for number in range(11)]
    for number, path in enumerate(paths):
        grey = number == 7
        shape = (5, 4) if grey else (5, 4, 3)
        pixels = np.full(shape, 3 + 20 * number, np.uint16 if grey else np.uint8)
        Image.fromarray(pixels * 257 if grey else pixels).save(path)
    return paths


def test_the_same_pixels_in_the_same_order(files, monkeypatch) -> None:
    parallel = FileImages(files)[:]
    monkeypatch.setattr(lazy, "PARALLEL_PIXELS", 10**9)
    assert np.array_equal(FileImages(files)[:], parallel)
    assert np.allclose(parallel[:, 0, 0, 0], [(3 + 20 * number) / 255 for number in range(11)])


def test_the_first_broken_file_is_named(files) -> None:
    for number in (9, 5):
        files[number].write_bytes(b"broken")
    with pytest.raises(ImageError, match=r"5\.png cannot be read"):
        FileImages(files)[:]

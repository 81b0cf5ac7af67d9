"""Where the real data are: the folder named by SODA_TTA_DATA, else shared/data beside the checkout."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
from PIL import Image


def data_folder() -> Path:
    """Where the real data are; fails with the remedy."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SODA_TTA_DATA", beside))
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; set SODA_TTA_DATA to the folder of the real data.")
    return folder


def cifar10() -> tuple[np.ndarray, np.ndarray]:
    """The 10,000 test images and their labels."""
    archive = np.load(data_folder() / "cifar10-test.npz")
    return archive["images"], archive["labels"]


def imagenet(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first photographs of imagenet-1000, 224 x 224, and their labels."""
    folder = data_folder() / "imagenet-1000"
    with (folder / "labels.csv").open() as file:
        rows = [row for row in csv.reader(file) if row[1].isdigit()][:count]
    found = {path.stem: path for path in (folder / "images").iterdir()}
    images = [np.asarray(Image.open(found[Path(row[0]).stem]).convert("RGB")) for row in rows]
    return np.stack(images), np.array([int(row[1]) for row in rows])

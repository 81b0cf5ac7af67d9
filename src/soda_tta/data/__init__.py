"""Images in: anything that holds images, and the data sets of the field with their labels.

What reads data sets is imported when first used: most commands only need images.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from soda_tta.data.images import Images, open_images

if TYPE_CHECKING:
    from soda_tta.data.corrupted import Corrupted
    from soda_tta.data.dataset import Dataset
    from soda_tta.data.load import load_dataset

__all__ = ["Corrupted", "Dataset", "Images", "load_dataset", "open_images"]

HOMES = {
    "Corrupted": "soda_tta.data.corrupted",
    "Dataset": "soda_tta.data.dataset",
    "load_dataset": "soda_tta.data.load",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"soda_tta.data has no {name!r}.")
    return getattr(import_module(HOMES[name]), name)

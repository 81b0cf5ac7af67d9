"""Images in: one family of image sets, and the data sets of the field with their labels.

`open_images` opens images without labels, `load_dataset` a data set with them. Both go through
the same layouts, the same order of files and the same resize. `Corrupted` is imported on first
use, because it needs scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from soda_tta.data.dataset import Dataset
from soda_tta.data.grouping import group_images, groups_from_rule
from soda_tta.data.images import Images
from soda_tta.data.load import load_dataset
from soda_tta.data.resizing import Resize
from soda_tta.data.sources import open_images

if TYPE_CHECKING:
    from soda_tta.data.corrupted import Corrupted

__all__ = [
    "Corrupted",
    "Dataset",
    "Images",
    "Resize",
    "group_images",
    "groups_from_rule",
    "load_dataset",
    "open_images",
]


def __getattr__(name: str) -> Any:
    if name == "Corrupted":
        from soda_tta.data.corrupted import Corrupted

        return Corrupted
    raise AttributeError(f"module 'soda_tta.data' has no attribute {name!r}.")

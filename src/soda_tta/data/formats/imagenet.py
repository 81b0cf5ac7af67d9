"""ImageNet and ImageNet-C in their published folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from soda_tta.data.corruption_names import CORRUPTIONS
from soda_tta.data.dataset import Dataset
from soda_tta.data.formats.trees import class_folders, pick, subfolders
from soda_tta.data.reading import Reading
from soda_tta.data.resizing import Resize

WORDNET_ID = re.compile(r"n\d{8}")
FAMILIES = ("noise", "blur", "weather", "digital", "extra")  # of the published archives


def folder_reading(folder: Path, reading: Reading) -> Reading:
    """How a folder of class folders is read, the same for every way to open it.

    Folders named by WordNet ids get the standard view of ImageNet, 224 or the given size. Any other
    folder stays as it is, or is resized to the given size.
    """
    size = reading.resize.size
    folders = subfolders(folder)
    if folders and all(WORDNET_ID.fullmatch(path.name) for path in folders):
        view = Resize.imagenet() if size is None else Resize.imagenet(size)
        return replace(reading, resize=view)
    return reading


def corruption_folders(folder: Path) -> dict[str, Path]:
    """Folders named after a corruption: directly below, or below a published family."""
    children = subfolders(folder)
    families = [path for path in children if path.name in FAMILIES]
    candidates = [*children, *(path for family in families for path in subfolders(family))]
    return {path.name: path for path in candidates if path.name in CORRUPTIONS}


def imagenet_c(
    folder: Path,
    corruption: str | None,
    severity: int,
    reading: Reading,
    classes: Sequence[str] | None = None,
    title: str | None = None,
) -> Dataset:
    """`corruption/severity/wnid/*.JPEG`: one corruption at one severity."""
    corrupted = pick(folder, "corruption", corruption, corruption_folders(folder))
    severities = {path.name: path for path in subfolders(corrupted)}
    chosen = pick(corrupted, "severity", str(severity), severities)
    return class_folders(
        chosen,
        folder_reading(chosen, reading),
        classes,
        f"{title or folder.name}, {corruption} {severity}",
    )

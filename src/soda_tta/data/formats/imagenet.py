"""ImageNet and ImageNet-C in their published folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.data.dataset import Dataset
from soda_tta.data.files import read_image
from soda_tta.data.formats.trees import Reader, class_folders, reader, subfolders
from soda_tta.errors import ImageError
from soda_tta.types import Array

RESIZED, CROPPED = 256, 224  # the shorter side, then the centre: how ImageNet models are measured
WORDNET_ID = re.compile(r"n\d{8}")


def standard_view(path: Path, *, cropped_before: bool = False) -> Array:
    """The shorter side resized to 256 (bilinear), then the centre of 224, rounded as torchvision rounds.

    With `cropped_before` an image of 224 pixels stays as it is: the published ImageNet-C went through this already.
    """
    pixels = read_image(path)
    height, width = pixels.shape[:2]
    if cropped_before and (height, width) == (CROPPED, CROPPED):
        return pixels
    tall = width <= height
    fitted = (
        (RESIZED, int(RESIZED * height / width))
        if tall
        else (int(RESIZED * width / height), RESIZED)
    )
    picture = Image.fromarray(pixels).resize(fitted, Image.Resampling.BILINEAR)
    left, top = round((fitted[0] - CROPPED) / 2), round((fitted[1] - CROPPED) / 2)
    return np.asarray(picture.crop((left, top, left + CROPPED, top + CROPPED)))


def named_by_wordnet(folders: Sequence[Path]) -> bool:
    return bool(folders) and all(WORDNET_ID.fullmatch(path.name) for path in folders)


def tree_reader(folder: Path, size: tuple[int, int] | None) -> Reader:
    """ImageNet's standard view for its folders, unless a size is given; files as they are for any other tree."""
    return standard_view if size is None and named_by_wordnet(subfolders(folder)) else reader(size)


def corruption_folders(folder: Path) -> dict[str, Path]:
    """The folders named after a corruption, right below or, as in the published archives, below a family."""
    right_below = subfolders(folder)
    families = [
        path
        for path in right_below
        if path.name in ("noise", "blur", "weather", "digital", "extra")
    ]
    found = [*right_below, *(path for family in families for path in subfolders(family))]
    return {path.name: path for path in found if path.name in CORRUPTIONS}


def imagenet_c(
    folder: Path,
    corruption: str | None,
    severity: int,
    size: tuple[int, int] | None = None,
    classes: Sequence[str] | None = None,
    title: str | None = None,
) -> Dataset:
    """`corruption/severity/wnid/*.JPEG`: one corruption at one severity."""
    stored = corruption_folders(folder)
    if corruption not in stored:
        asked = (
            "choose a corruption"
            if corruption is None
            else f"there is no corruption {corruption!r}"
        )
        raise ImageError(f"{folder}: {asked}; it has {', '.join(stored)}.")
    severities = {path.name: path for path in subfolders(stored[corruption])}
    if str(severity) not in severities:
        raise ImageError(
            f"{stored[corruption]}: there is no severity {severity}; it has {', '.join(severities)}."
        )
    chosen = severities[str(severity)]
    wordnet = named_by_wordnet(subfolders(chosen))
    read = partial(standard_view, cropped_before=True) if size is None and wordnet else reader(size)
    return class_folders(chosen, read, classes, f"{title or folder.name}, {corruption} {severity}")

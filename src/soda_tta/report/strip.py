"""Pictures on the page: the images whose answers moved most, as they were, as adapted, and what was changed."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.data import Images, open_images
from soda_tta.errors import ImageError
from soda_tta.report.account import Account
from soda_tta.types import Array

MOST = 12
ALIKE = 2  # images shown whose class changed in the same way
AMPLIFIED = 4  # a difference is shown so many times stronger, around grey
LARGEST = 128  # pixels on the page; larger images are shrunk
LOSSLESS = 64  # up to this size PNG; above, JPEG keeps the page small
HASHED_BYTES = 2**31  # larger sets are not read through only to recognise them


@dataclass(frozen=True)
class Picture:
    """One image of the strip."""

    index: int
    name: str
    shown: list[tuple[str, str]]  # caption and data URI


def open_checked(source: Any, account: Account) -> Images:
    """The images of this run; others are refused, for pictures beside the wrong answers would mislead."""
    files = isinstance(source, str | Path) and Path(source).is_dir()
    images = open_images(
        source, account.size if files else None
    )  # files are resized as the run had them
    where = source if isinstance(source, str | Path) else "these"
    if len(images) != account.count or tuple(images.size) != account.size:
        raise ImageError(
            f"{where}: {len(images):,} images of {images.size[1]}x{images.size[0]}; the run saw {account.count:,} of "
            f"{account.size[1]}x{account.size[0]}. Give the images it was made with."
        )
    expected = account.card.get("images", {}).get("fingerprint")
    small = len(images) * images.size[0] * images.size[1] * 3 <= HASHED_BYTES
    if expected and small and images.fingerprint() != expected:
        raise ImageError(
            f"{where}: as many images as the run saw, but other ones; give those it was made with."
        )
    return images


def most_changed(moved: Array, before: Array, after: Array, harmed: Array | None) -> Array:
    """Positions of the images to show: the furthest moved, but few of a kind, and then some that became wrong.

    `before`, `after`: the class given to each image. `harmed`: which were right and are no longer, if labels tell.
    """
    bad = (
        []
        if harmed is None
        else _few_of_a_kind(np.where(harmed, moved, -1.0), before, after, MOST // 3)
    )
    rest = moved.copy()
    rest[bad] = -1.0
    return np.array([*_few_of_a_kind(rest, before, after, MOST - len(bad)), *bad], int)


def _few_of_a_kind(score: Array, before: Array, after: Array, most: int) -> list[int]:
    """The highest scores, at most ALIKE with the same two classes; negative scores are not for show."""
    ahead = min(len(score), 100 * most)  # of a million images only the foremost are sorted
    order = np.argpartition(-score, ahead - 1)[:ahead]
    chosen: list[int] = []
    seen: dict[tuple[int, int], int] = {}
    for index in order[np.argsort(-score[order], kind="stable")].tolist():
        kind = (int(before[index]), int(after[index]))
        if score[index] < 0 or len(chosen) == most:
            break
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= ALIKE:
            chosen.append(index)
    return chosen


def make_strip(
    account: Account, images: Images, chosen: Array, adaptors: dict[str, Adaptor]
) -> list[Picture]:
    """Original, then adapted and difference for each adaptor."""
    originals = images[chosen]
    changed = {
        name: adaptor(originals)
        for name, adaptor in adaptors.items()
        if not isinstance(adaptor, Identity)
    }
    strip = []
    for row, index in enumerate(chosen.tolist()):
        shown = [("original", data_uri(originals[row]))]
        for name, adapted in changed.items():
            difference = 0.5 + AMPLIFIED * (adapted[row] - originals[row])
            shown.append((name, data_uri(adapted[row])))
            if len(changed) == 1:
                shown.append((f"difference ×{AMPLIFIED}", data_uri(difference)))
        strip.append(Picture(index, account.name(index), shown))
    return strip


def data_uri(pixels: Array) -> str:
    """One image (3, height, width) as a string a page can hold."""
    picture = Image.fromarray(
        np.rint(np.clip(pixels, 0, 1).transpose(1, 2, 0) * 255).astype(np.uint8)
    )
    picture.thumbnail((LARGEST, LARGEST), Image.Resampling.BOX)
    buffer, kind = io.BytesIO(), "PNG" if max(picture.size) <= LOSSLESS else "JPEG"
    picture.save(buffer, kind, optimize=True, **({} if kind == "PNG" else {"quality": 85}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"

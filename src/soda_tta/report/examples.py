"""Example images on a page: the originals, the adapted images and their differences."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.box.view import View
from soda_tta.data import Images, open_images
from soda_tta.data.reading import OnBadImage
from soda_tta.data.resizing import Resize
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import ImageError
from soda_tta.report.record import RunRecord
from soda_tta.types import Array

MOST = 12  # images on a page
ALIKE = 2  # images shown with the same change of class
AMPLIFICATION = 4  # of a difference, which is drawn around grey
LARGEST = 128  # pixels on the page; larger images are shrunk
LOSSLESS = 64  # pixels: PNG up to this size; JPEG above keeps the page small
HASHED_BYTES = 2**31  # larger sets are not read completely only to check their fingerprint


@dataclass(frozen=True)
class Example:
    """One image, in several versions."""

    index: int
    name: str
    versions: list[tuple[str, str]]  # caption and data URI of each version


def open_run_images(source: Any, record: RunRecord) -> Images:
    """Open the images of a run; other images are an error.

    Other images next to this run's predictions would mislead the reader.
    """
    images = _prepared_alike(source, record)
    where = source if isinstance(source, str | Path) else "images"
    if len(images) != record.count or tuple(images.size) != record.size:
        height, width = images.size
        raise ImageError(
            f"{where}: {len(images):,} images of {width}x{height}, but the run had "
            f"{record.count:,} images of {record.size[1]}x{record.size[0]}. "
            "Pass the images the run was made with."
        )
    fingerprint = record.card.get("images", {}).get("fingerprint")
    is_small = len(images) * images.size[0] * images.size[1] * 3 <= HASHED_BYTES
    if fingerprint and is_small and images.fingerprint() != fingerprint:
        raise ImageError(
            f"{where}: the number and size of the images match the run, but the pixels are "
            "different. Pass the images the run was made with."
        )
    return images


def _prepared_alike(source: Any, record: RunRecord) -> Images:
    """The images, resized and with files left out as they were for the run."""
    facts = record.card.get("images", {})
    if facts.get("sample"):
        return _sample_of(source, record)
    on_bad_image: OnBadImage = "skip" if facts.get("skipped") else "fail"
    over = facts.get("over", "white")
    if facts.get("original_size"):
        crop = record.card.get("box", {}).get("input", {}).get("crop")
        images = open_images(source, on_bad_image=on_bad_image, over=over)
        return at_working_size(images, View(record.size, crop))
    is_folder = isinstance(source, str | Path) and Path(source).is_dir()
    size = record.size if is_folder else None
    return open_images(source, size, on_bad_image=on_bad_image, over=over)


def _sample_of(source: Any, record: RunRecord) -> Images:
    """The images of a run that had a sample of the source."""
    facts = record.card["images"]
    sample = facts["sample"]
    how: dict[str, Any] = {"sample": int(sample["asked"]), "seed": int(sample["seed"])}
    if isinstance(source, str | Path) and Path(source).is_dir():
        # the archive may have grown since: its images are found by name
        paths = [Path(source, name) for name in record.names]
        if all(path.is_file() for path in paths):
            source = paths
            how = {}
    how["on_bad_image"] = "skip" if facts.get("skipped") else "fail"
    how["over"] = facts.get("over", "white")
    if facts.get("original_size"):
        crop = record.card.get("box", {}).get("input", {}).get("crop")
        return at_working_size(open_images(source, **how), View(record.size, crop))
    is_resized = facts.get("resize") != str(Resize())
    return open_images(source, record.size if is_resized else None, **how)


def most_changed(
    distance: Array, before: Array, after: Array, harmed: Array | None = None
) -> Array:
    """Positions of the images to show: the largest changes, then some that became wrong.

    Images whose prediction did not move are never among them.

    `distance` is how far each prediction moved, `before` and `after` are the predicted classes,
    and `harmed` marks the images that became wrong, if labels are available.
    """
    became_wrong: list[int] = []
    if harmed is not None:
        scores = np.where(harmed, distance, -1.0)
        became_wrong = _highest_scores(scores, before, after, MOST // 3)
    others = distance.copy()
    others[became_wrong] = -1.0
    chosen = _highest_scores(others, before, after, MOST - len(became_wrong))
    return np.array([*chosen, *became_wrong], int)


def _highest_scores(score: Array, before: Array, after: Array, most: int) -> list[int]:
    """The highest scores, at most ALIKE with the same pair of classes; only positive ones."""
    # of a million images only the first few are sorted
    candidates = min(len(score), 100 * most)
    order = np.argpartition(-score, candidates - 1)[:candidates]
    chosen: list[int] = []
    counts: dict[tuple[int, int], int] = {}
    for index in order[np.argsort(-score[order], kind="stable")].tolist():
        if score[index] <= 0 or len(chosen) == most:
            break
        pair = (int(before[index]), int(after[index]))
        counts[pair] = counts.get(pair, 0) + 1
        if counts[pair] <= ALIKE:
            chosen.append(index)
    return chosen


def make_examples(
    record: RunRecord, images: Images, chosen: Array, adaptors: dict[str, Adaptor]
) -> list[Example]:
    """The chosen images: the original, then the adapted image of each adaptor by name.

    With a single adaptor the difference is shown, too.
    """
    originals = images[chosen]
    adapted_by_name = {
        name: adaptor(originals)
        for name, adaptor in adaptors.items()
        if not isinstance(adaptor, Identity)
    }
    examples = []
    for row, index in enumerate(chosen.tolist()):
        versions = [("original", data_uri(originals[row]))]
        for name, adapted in adapted_by_name.items():
            versions.append((name, data_uri(adapted[row])))
            if len(adapted_by_name) == 1:
                difference = 0.5 + AMPLIFICATION * (adapted[row] - originals[row])
                versions.append((f"difference ×{AMPLIFICATION}", data_uri(difference)))
        examples.append(Example(index, record.name(index), versions))
    return examples


def data_uri(pixels: Array) -> str:
    """One image (3, height, width) as a data URI."""
    bytes_hwc = np.rint(np.clip(pixels, 0, 1).transpose(1, 2, 0) * 255).astype(np.uint8)
    picture = Image.fromarray(bytes_hwc)
    picture.thumbnail((LARGEST, LARGEST), Image.Resampling.BOX)
    buffer = io.BytesIO()
    if max(picture.size) <= LOSSLESS:
        kind = "png"
        picture.save(buffer, "PNG", optimize=True)
    else:
        kind = "jpeg"
        picture.save(buffer, "JPEG", optimize=True, quality=85)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"

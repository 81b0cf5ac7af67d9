"""Corrupted data sets on disk: as a mirror of their folder, or in the published layouts. Whole, or not at all."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

import numpy as np
from PIL import Image

from soda_tta.data.corrupted import Corrupted, CorruptedImages
from soda_tta.data.corruptions import SEVERITIES
from soda_tta.data.dataset import Dataset
from soda_tta.data.files import SUFFIXES
from soda_tta.errors import ImageError, RunError
from soda_tta.storage.atomic import replacing
from soda_tta.types import Array

Advance = Callable[[int], None]
LAYOUTS = ("folder", "cifar-c", "imagenet-c")
AT_ONCE = 64  # images held in memory
JPEG_QUALITY = 85  # of the published ImageNet-C


def write_corrupted(
    dataset: Dataset,
    out: Path,
    corruptions: Sequence[str],
    severities: Sequence[int],
    layout: str = "folder",
    *,
    seed: int = 0,
    constants: str | None = None,
    frost: Path | None = None,
    advance: Advance = lambda images: None,
) -> list[Path]:
    """Writes every corruption at every severity and returns what is new.

    `folder`: PNG files named as the originals; below corruption/severity/ where there are several of either.
    `cifar-c`: one .npy a corruption, with all five severities, and labels.npy.
    `imagenet-c`: corruption/severity/class/*.JPEG.
    What exists already is never written over.
    """

    def corrupted(corruption: str, severity: int) -> Corrupted:
        return Corrupted(dataset, corruption, severity, seed, constants=constants, frost=frost)

    corrupted(corruptions[0], severities[0])  # complains before anything is written
    if layout == "cifar-c":
        with no_empty_folder(out):
            return write_cifar_c(dataset, out, corruptions, corrupted, advance)
    alone = layout == "folder" and len(corruptions) == len(severities) == 1
    names = published_names(dataset) if layout == "imagenet-c" else mirrored_names(dataset)
    targets = {
        (corruption, severity): out if alone else out / corruption / str(severity)
        for corruption in corruptions
        for severity in severities
    }
    for target in targets.values():
        check_free(target)
    for (corruption, severity), target in targets.items():
        with no_empty_folder(target.parent), whole_folder(target) as folder:
            write_pictures(corrupted(corruption, severity), folder, names, advance)
            if layout == "folder" and not labels_are_in(names, dataset):
                write_labels(folder / "labels.csv", names, dataset)
    return list(targets.values())


def write_cifar_c(
    dataset: Dataset,
    out: Path,
    corruptions: Sequence[str],
    corrupted: Callable[[str, int], Corrupted],
    advance: Advance,
) -> list[Path]:
    """`fog.npy` with 5 x n rows, severity 1 first; labels.npy with as many labels."""
    labels = np.tile(check_labelled(dataset, "cifar-c"), len(SEVERITIES))
    files = [out / f"{corruption}.npy" for corruption in corruptions]
    for file in files:
        check_free(file)
    beside = out / "labels.npy"
    if beside.exists() and not np.array_equal(np.load(beside, allow_pickle=False), labels):
        raise ImageError(f"{beside} holds other labels than {dataset.title}; choose another --out.")
    shape = (len(SEVERITIES) * len(dataset), *dataset.size, 3)
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    for corruption, file in zip(corruptions, files, strict=True):
        with replacing(file) as temporary:
            with temporary.open("wb") as opened:
                np.lib.format.write_array_header_1_0(opened, header)
                for severity in SEVERITIES:
                    for positions, pixels in in_parts(corrupted(corruption, severity)):
                        opened.write(pixels.tobytes())
                        advance(len(positions))
            if (
                not beside.exists()
            ):  # before the images get their name: they are never seen without labels
                with replacing(beside) as waiting, waiting.open("wb") as small:
                    np.save(small, labels)
    return [*files, beside]


def write_pictures(
    corrupted: Corrupted, folder: Path, names: Sequence[PurePath], advance: Advance
) -> None:
    for positions, pixels in in_parts(corrupted):
        for position, image in zip(positions, pixels, strict=True):
            path = folder / names[position]
            path.parent.mkdir(parents=True, exist_ok=True)
            picture = Image.fromarray(image)
            if path.suffix == ".png":
                picture.save(path, "PNG")
            else:
                picture.save(path, "JPEG", quality=JPEG_QUALITY, optimize=True)
        advance(len(positions))


def in_parts(corrupted: Corrupted) -> Iterator[tuple[Array, Array]]:
    """Positions and bytes, a part at a time; made once, so not kept."""
    images = corrupted.images
    assert isinstance(images, CorruptedImages)
    for start in range(0, len(corrupted), AT_ONCE):
        positions = np.arange(start, min(start + AT_ONCE, len(corrupted)))
        yield positions, images.make(positions)


def mirrored_names(dataset: Dataset) -> list[PurePath]:
    """Each image as PNG where the original lies below its folder; an array goes into one folder a class."""
    names = [PurePath(dataset.name(position)) for position in range(len(dataset))]
    if all(name.suffix.lower() in SUFFIXES for name in names):
        return distinct([name.with_suffix(".png") for name in names], names)
    return [folder / f"{position:05}.png" for position, folder in enumerate(class_names(dataset))]


def published_names(dataset: Dataset) -> list[PurePath]:
    """class/name.JPEG"""
    check_labelled(dataset, "imagenet-c")
    names = [PurePath(dataset.name(position)) for position in range(len(dataset))]
    stems = [name.stem if name.suffix else f"{position:05}" for position, name in enumerate(names)]
    return distinct(
        [folder / f"{stem}.JPEG" for folder, stem in zip(class_names(dataset), stems, strict=True)],
        names,
    )


def class_names(dataset: Dataset) -> list[PurePath]:
    """The folder of each image: its class, by name or else by number; none without labels."""
    if dataset.labels is None:
        return [PurePath()] * len(dataset)
    return [
        PurePath(dataset.classes[label] if dataset.classes else str(label))
        for label in dataset.labels
    ]


def distinct(targets: list[PurePath], sources: list[PurePath]) -> list[PurePath]:
    """Fails when two images would be written to one file, or one outside of the folder."""
    taken: dict[PurePath, PurePath] = {}
    for target, source in zip(targets, sources, strict=True):
        if target in taken:
            raise ImageError(
                f"{taken[target]} and {source} would both become {target}; rename one."
            )
        if target.is_absolute() or ".." in target.parts:
            raise ImageError(f"{source} lies outside of the folder; it has no place in the copy.")
        taken[target] = source
    return targets


def labels_are_in(names: Sequence[PurePath], dataset: Dataset) -> bool:
    """Whether the folders tell the classes already."""
    folders = class_names(dataset)
    return dataset.labels is None or all(n.parent == f for n, f in zip(names, folders, strict=True))


def write_labels(file: Path, names: Sequence[PurePath], dataset: Dataset) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["file", "label"])
    table.writerows([str(n), str(f)] for n, f in zip(names, class_names(dataset), strict=True))
    file.write_text(text.getvalue(), encoding="utf-8")


def check_labelled(dataset: Dataset, layout: str) -> Array:
    if dataset.labels is None:
        raise ImageError(
            f"{dataset.title} has no labels, which the layout {layout} stores; choose --layout folder."
        )
    return dataset.labels


def check_free(path: Path) -> None:
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise RunError(f"{path} exists and is not written over; remove it, or choose another name.")


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A folder beside `target` that takes its place if, and only if, the block succeeds."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if target.is_dir():
            target.rmdir()  # empty, as checked
        temporary.replace(target)
    except OSError as error:
        raise RunError(
            f"{target} could not be written: {error.strerror or error}. Nothing is left of it."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def no_empty_folder(folder: Path) -> Iterator[None]:
    """Takes away again, after a failure, the folders that had to be made and hold nothing."""
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except BaseException:
        for path in absent:
            with suppress(OSError):
                path.rmdir()
        raise

"""Corrupted data sets on disk, in a copy of their folder or in the published layouts.

A file or folder appears under its name only when it is complete.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

import numpy as np
from PIL import Image

from soda_tta.data.corrupted import Corrupted, CorruptedImages
from soda_tta.data.corruption_names import SEVERITIES
from soda_tta.data.dataset import Dataset
from soda_tta.data.files import SUFFIXES
from soda_tta.errors import ImageError, RunError
from soda_tta.storage.atomic import replacing
from soda_tta.storage.spreadsheet import as_cell
from soda_tta.storage.temporary import temporary_name
from soda_tta.types import Array

Advance = Callable[[int], None]
LAYOUTS = ("folder", "cifar-c", "imagenet-c")
AT_ONCE = 64  # images in memory at a time
JPEG_QUALITY = 85  # that of the published ImageNet-C


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
    """Write every corruption at every severity; existing files are never overwritten.

    Parameters
    ----------
    dataset : Dataset
        The clean images.
    out : Path
        The folder to write to.
    corruptions : sequence of str
        Names of corruptions, at least one.
    severities : sequence of int
        From 1 to 5, at least one; "cifar-c" always writes all five.
    layout : {"folder", "cifar-c", "imagenet-c"}, default "folder"
        "folder": PNG files named as the originals, below corruption/severity/ where there are
        several of either. "cifar-c": one .npy file per corruption with all five severities, and
        labels.npy. "imagenet-c": corruption/severity/class/*.JPEG.
    seed : int, default 0
        Image i depends on the seed and on i only.
    constants : {"cifar", "imagenet"}, optional
        Strength of the corruptions. Default: by image size.
    frost : Path, optional
        Folder of photographs for "frost". Default: frost is drawn.
    advance : callable
        Called with the number of images written since the last call. Default: does nothing.

    Returns
    -------
    list of Path
        The files or folders written.
    """

    def corrupted(corruption: str, severity: int) -> Corrupted:
        return Corrupted(dataset, corruption, severity, seed, constants=constants, frost=frost)

    corrupted(corruptions[0], severities[0])  # wrong settings fail before anything is written
    if layout == "cifar-c":
        with no_empty_folder(out):
            return write_cifar_c(dataset, out, corruptions, corrupted, advance)
    single = layout == "folder" and len(corruptions) == len(severities) == 1
    names = published_names(dataset) if layout == "imagenet-c" else mirrored_names(dataset)
    targets = {
        (corruption, severity): out if single else out / corruption / str(severity)
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
    """Write `fog.npy` with 5 x n rows, severity 1 first, and `labels.npy` with as many labels."""
    labels = np.tile(check_labelled(dataset, "cifar-c"), len(SEVERITIES))
    files = [out / f"{corruption}.npy" for corruption in corruptions]
    for file in files:
        check_free(file)
    label_file = out / "labels.npy"
    if label_file.exists():
        stored = np.load(label_file, allow_pickle=False)
        if not np.array_equal(stored, labels):
            raise ImageError(
                f"{label_file} holds other labels than {dataset.title}; choose another folder."
            )
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
            # before the images get their name, so that they never exist without labels
            if not label_file.exists():
                with replacing(label_file) as unnamed, unnamed.open("wb") as opened:
                    np.save(opened, labels)
    return [*files, label_file]


def write_pictures(
    corrupted: Corrupted, folder: Path, names: Sequence[PurePath], advance: Advance
) -> None:
    """Write every image under its name, as PNG or JPEG."""
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
    """Positions and 8-bit pixels, a part at a time; used once, so not kept in memory."""
    images = corrupted.images
    assert isinstance(images, CorruptedImages)
    for start in range(0, len(corrupted), AT_ONCE):
        positions = np.arange(start, min(start + AT_ONCE, len(corrupted)))
        yield positions, images.compute(positions)


def mirrored_names(dataset: Dataset) -> list[PurePath]:
    """The names of the originals, as PNG; the images of an array go into class folders."""
    names = [PurePath(dataset.name(position)) for position in range(len(dataset))]
    if all(name.suffix.lower() in SUFFIXES for name in names):
        return distinct([name.with_suffix(".png") for name in names], names)
    return [folder / f"{position:05}.png" for position, folder in enumerate(class_names(dataset))]


def published_names(dataset: Dataset) -> list[PurePath]:
    """`class/name.JPEG` for every image."""
    check_labelled(dataset, "imagenet-c")
    names = [PurePath(dataset.name(position)) for position in range(len(dataset))]
    stems = [name.stem if name.suffix else f"{position:05}" for position, name in enumerate(names)]
    folders = class_names(dataset)
    targets = [folder / f"{stem}.JPEG" for folder, stem in zip(folders, stems, strict=True)]
    return distinct(targets, names)


def class_names(dataset: Dataset) -> list[PurePath]:
    """The folder of each image: the name or number of its class; no folder without labels."""
    if dataset.labels is None:
        return [PurePath()] * len(dataset)
    classes = dataset.classes
    if classes is None:
        return [PurePath(str(label)) for label in dataset.labels]
    return [PurePath(classes[label]) for label in dataset.labels]


def distinct(targets: list[PurePath], sources: list[PurePath]) -> list[PurePath]:
    """The targets; fails when two images share one, or one lies outside the folder."""
    taken: dict[PurePath, PurePath] = {}
    for target, source in zip(targets, sources, strict=True):
        if target in taken:
            raise ImageError(
                f"{taken[target]} and {source} would both become {target}; rename one."
            )
        if target.is_absolute() or ".." in target.parts:
            raise ImageError(
                f"{source} lies outside the folder, so it has no name in the copy; move it inside."
            )
        taken[target] = source
    return targets


def labels_are_in(names: Sequence[PurePath], dataset: Dataset) -> bool:
    """Whether every image already lies in the folder of its class."""
    folders = class_names(dataset)
    return dataset.labels is None or all(n.parent == f for n, f in zip(names, folders, strict=True))


def write_labels(file: Path, names: Sequence[PurePath], dataset: Dataset) -> None:
    """Write a table with the header `file,label`."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["file", "label"])
    pairs = zip(names, class_names(dataset), strict=True)
    table.writerows([as_cell(str(name)), as_cell(str(label))] for name, label in pairs)
    file.write_text(text.getvalue(), encoding="utf-8")


def check_labelled(dataset: Dataset, layout: str) -> Array:
    """The labels; fails when there are none."""
    if dataset.labels is None:
        raise ImageError(
            f"{dataset.title} has no labels, which the layout {layout} stores; "
            "pass layout='folder'."
        )
    return dataset.labels


def check_free(path: Path) -> None:
    """Fail when a file or a folder with content exists at this path."""
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise RunError(f"{path} exists and is not overwritten; remove it or choose another name.")


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `target` only if the block succeeds."""
    temporary = temporary_name(target)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if target.is_dir():
            target.rmdir()  # it is empty: `check_free` has checked
        temporary.replace(target)
    except OSError as error:
        raise RunError(
            f"{target} cannot be written: {error.strerror or error}. No partial result is left."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def no_empty_folder(folder: Path) -> Iterator[None]:
    """After a failure, remove the empty folders that the block created."""
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except BaseException:
        for path in absent:
            with suppress(OSError):
                path.rmdir()
        raise

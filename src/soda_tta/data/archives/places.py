"""Files and folders, local or behind any address that fsspec can open."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from soda_tta.errors import ImageError, SodaError, StorageError
from soda_tta.masking import masked
from soda_tta.storage.atomic import NO_SPACE, replacing, write_bytes

ADDRESS = re.compile(r"(?P<protocol>[a-zA-Z][\w+.-]*)://")
# What fsspec needs for an address, apart from what is in the extra.
PACKAGES = {
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
}
# Stores in which an upload is seen whole or not at all; elsewhere a file is renamed when complete.
WHOLE_UPLOADS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "memory"}
CREDENTIALS = (
    "check the credentials: for S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile."
)


def is_address(text: str) -> bool:
    """Whether this is an address such as s3://bucket/folder, and not a local path.

    >>> is_address("s3://bucket/photos"), is_address("photos"), is_address("C:/photos")
    (True, False, False)
    """
    return ADDRESS.match(text) is not None


def file_system(address: str) -> tuple[Any, str]:
    """The fsspec file system of a path or an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise SodaError("archives need fsspec: pip install 'soda-tta[archive]'.") from error
    match = ADDRESS.match(address)
    protocol = match["protocol"] if match else "file"
    try:
        # without a cache of listings: a resume must see what other processes have written
        system, path = url_to_fs(address, use_listings_cache=False)
    except ImportError as error:
        package = PACKAGES.get(protocol)
        remedy = f"pip install {package}" if package else "pip install 'soda-tta[archive]'"
        raise SodaError(f"{protocol}:// needs a package that is missing: {remedy}.") from error
    except ValueError as error:
        raise SodaError(
            f"{address} cannot be opened: {error}; give a path, or an address such as "
            "s3://bucket/folder."
        ) from error
    return system, str(path)


@contextmanager
def reading(address: str) -> Iterator[None]:
    """Turn what a file system raises while something is read into an ImageError."""
    try:
        yield
    except (SodaError, KeyboardInterrupt):
        raise
    except FileNotFoundError as error:
        raise ImageError(f"{address} does not exist.") from error
    except Exception as error:  # every file system has errors of its own
        raise ImageError(f"{address} cannot be read: {reason_of(error)}") from error


@contextmanager
def writing(address: str) -> Iterator[None]:
    """Turn what a file system raises while something is written into a StorageError."""
    try:
        yield
    except (SodaError, KeyboardInterrupt):
        raise
    except Exception as error:
        remedy = ""
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            remedy = " Free some space, then continue with resume=True."
        if isinstance(error, FileNotFoundError):  # a store has no such bucket
            remedy = " Create it, or choose another out=."
        raise StorageError(f"{address} could not be written: {reason_of(error)}{remedy}") from error


def reason_of(error: Exception) -> str:
    """What went wrong, with a remedy where credentials are the cause."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    text = text.rstrip(".") + "."
    if isinstance(error, PermissionError) or "redential" in text:
        return f"{text} If it is a store, {CREDENTIALS}"
    if "connect" in text.lower():
        return f"{text} Check the network and the address: for S3 AWS_ENDPOINT_URL."
    return text


class Place:
    """A local folder or a prefix of a store, which files are written to whole.

    Parameters
    ----------
    address : str
        A path or an address.

    Examples
    --------
    >>> place = Place("memory://doctest-place")
    >>> place.write("a.txt", b"text")
    >>> place.names(), place.read("a.txt")
    ({'a.txt'}, b'text')
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/") or address
        self.system, self.path = file_system(self.address)
        protocol = self.system.protocol
        self.protocols = {protocol} if isinstance(protocol, str) else set(protocol)

    @property
    def local(self) -> Path | None:
        """The folder, if it is on this machine."""
        return Path(self.path) if "file" in self.protocols else None

    def check_writable(self) -> None:
        """Refuse a place that can only be read."""
        if self.protocols & {"http", "https"}:
            raise StorageError(f"{self} can only be read; choose another out=.")

    @property
    def absolute(self) -> str:
        """The same place for a process with another current folder."""
        return self.address if self.local is None else str(self.local.absolute())

    def __str__(self) -> str:
        return masked(self.address)

    def within(self, name: str) -> str:
        """The path of a file in the file system."""
        return posixpath.join(self.path, name)

    def names(self) -> set[str]:
        """The names directly below; none if there is no such folder."""
        with writing(self.address):
            try:
                entries = self.system.ls(self.path, detail=False)
            except FileNotFoundError:
                return set()
        return {str(entry).rstrip("/").rpartition("/")[2] for entry in entries} - {""}

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with reading(f"{self.address}/{name}"):
            return bytes(self.system.cat_file(self.within(name)))

    def write(self, name: str, data: bytes) -> None:
        """Write a file: the whole of it or nothing."""
        if self.local is not None:
            write_bytes(self.local / name, data)
            return
        with self.new_file(name) as path:
            path.write_bytes(data)

    @contextmanager
    def new_file(self, name: str) -> Iterator[Path]:
        """A local path to write to; it becomes the file when the block succeeds."""
        if self.local is not None:
            with replacing(self.local / name) as temporary:
                yield temporary
            return
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / "part"
            try:
                yield temporary
            except OSError as error:
                raise StorageError(f"{temporary} could not be written: {error}.") from error
            with writing(f"{self.address}/{name}"):
                self._upload(temporary, name)

    def _upload(self, file: Path, name: str) -> None:
        target = self.within(name)
        if self.protocols & WHOLE_UPLOADS:
            self.system.put_file(str(file), target)
            return
        hidden = self.within(f".{name}.part")
        self.system.makedirs(self.path, exist_ok=True)
        self.system.put_file(str(file), hidden)
        self.system.mv(hidden, target)

    def open(self, name: str) -> BinaryIO:
        """A file to read from, also in the middle."""
        with reading(f"{self.address}/{name}"):
            opened: BinaryIO = self.system.open(self.within(name), "rb")
            return opened

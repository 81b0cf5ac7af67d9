"""Download a file over HTTP: resumed after an interruption, verified before use."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from soda_tta.errors import SodaError

Progress = Callable[[int, int | None], None]  # bytes so far, total bytes if known
CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
PAUSE = 1.0  # seconds, times the number of attempts in a row without progress
ATTEMPTS = 5  # connections in a row without progress


class Unreachable(SodaError):
    """The server could not be reached or refused; another source may help."""


def fetch(url: str, target: Path, md5: str, progress: Progress | None = None) -> Path:
    """Download to `target` by way of `target.part`, which a later call resumes.

    `target` exists only once the file is complete and its checksum is right.

    Parameters
    ----------
    url : str
        An http(s) address.
    target : Path
        Where the file goes.
    md5 : str
        The published checksum, in hexadecimal.
    progress : callable, optional
        Called with the bytes so far and the total, or None if unknown. Default: None.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise SodaError(f"{url} is not an http(s) address; give one.")
    part = target.with_name(target.name + ".part")
    idle = 0
    furthest = size_of(part)
    while True:
        try:
            if receive(url, part, progress):
                break
            reason = "the connection ended early"
        except urllib.error.HTTPError as error:
            raise Unreachable(f"{url} answered {error.code} {error.reason}.") from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        idle = 0 if size_of(part) > furthest else idle + 1
        furthest = max(furthest, size_of(part))
        if idle == (ATTEMPTS if furthest else 1):
            kept = ""
            if part.exists():
                kept = f" {part} keeps {size_of(part):,} bytes; run the same command to resume."
            raise Unreachable(f"{url} cannot be read: {reason}.{kept}")
        time.sleep(PAUSE * idle)
    checksum = digest(part)
    if checksum != md5:
        part.unlink()
        raise SodaError(
            f"the file from {url} has the md5 checksum {checksum}, not {md5}; it was deleted. "
            "Try again; if it happens again, that address serves another file."
        )
    part.replace(target)
    return target


def receive(url: str, part: Path, progress: Progress | None) -> bool:
    """Request the missing bytes and append them; True when the file is complete."""
    have = size_of(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)  # the scheme is checked
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        total = total_of(error.headers.get("Content-Range"))
        if total == have:
            return True  # it is complete already
        part.unlink()  # longer than the file on the server: not the same file
        return False
    with response:
        continued = (
            response.status == 206 and starts_at(response.headers.get("Content-Range")) == have
        )
        if response.status == 206 and not continued:
            raise http.client.HTTPException("the server sent another part than requested")
        length = response.headers.get("Content-Length")
        done = have if continued else 0
        total = done + int(length) if length else None
        with part.open("ab" if continued else "wb") as file:
            while chunk := response.read(CHUNK):
                try:
                    file.write(chunk)
                except OSError as error:  # a local problem: retrying would not help
                    raise SodaError(
                        f"{part} cannot be written: {error.strerror}; make room or choose "
                        "another folder with SODA_TTA_DATA."
                    ) from error
                done += len(chunk)
                if progress:
                    progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    return total is None or done == total


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def starts_at(content_range: str | None) -> int | None:
    """The first byte of a range: 'bytes 500-999/1000' -> 500."""
    first = (content_range or "").removeprefix("bytes ").split("-")[0]
    return int(first) if first.isdecimal() else None


def total_of(content_range: str | None) -> int | None:
    """The total of a range: 'bytes */1000' -> 1000."""
    last = (content_range or "").rpartition("/")[2]
    return int(last) if last.isdecimal() else None


def digest(path: Path) -> str:
    """The md5 checksum, which is what the home publishes; it guards against accidents."""
    checksum = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            checksum.update(chunk)
    return checksum.hexdigest()

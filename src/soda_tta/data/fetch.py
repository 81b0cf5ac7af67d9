"""A file over HTTP, continued where it stopped and checked before it is used."""

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

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known
CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
PAUSE = 1.0  # seconds, longer with every connection that brought nothing
ATTEMPTS = 5  # connections in a row that brought nothing new


class Unreachable(SodaError):
    """The other side could not be reached or refused; another source may help."""


def fetch(url: str, target: Path, md5: str, progress: Progress | None = None) -> Path:
    """Downloads to `target`, through `target.part`, which a later call continues. The checksum decides.

    Nothing is at `target` before every byte was there and right.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise SodaError(f"{url} is no http(s) address.")
    part = target.with_name(target.name + ".part")
    idle, furthest = 0, size_of(part)
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
            kept = (
                f" {part} keeps what came ({size_of(part):,} bytes); the same command continues."
                * part.exists()
            )
            raise Unreachable(f"{url} cannot be read: {reason}.{kept}")
        time.sleep(PAUSE * idle)
    found = digest(part)
    if found != md5:
        part.unlink()
        raise SodaError(
            f"what {url} sent has the md5 checksum {found}, not {md5}; it was thrown away. "
            "Try again; if it happens again, the file at that address is another one."
        )
    part.replace(target)
    return target


def receive(url: str, part: Path, progress: Progress | None) -> bool:
    """Asks for what is missing and appends it; True when nothing is missing any more."""
    have = size_of(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)  # the scheme was checked
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        total = total_of(error.headers.get("Content-Range"))
        if total == have:
            return True  # it was whole already
        part.unlink()  # longer than the file there: not the same file
        return False
    with answer:
        continued = answer.status == 206 and starts_at(answer.headers.get("Content-Range")) == have
        if answer.status == 206 and not continued:
            raise http.client.HTTPException("the server sent another part than was asked for")
        length = answer.headers.get("Content-Length")
        done = have if continued else 0
        total = done + int(length) if length else None
        with part.open("ab" if continued else "wb") as file:
            while chunk := answer.read(CHUNK):
                try:
                    file.write(chunk)
                except (
                    OSError
                ) as error:  # not the fault of the connection: trying again would not help
                    raise SodaError(f"{part} could not be written: {error.strerror}.") from error
                done += len(chunk)
                if progress:
                    progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    return total is None or done == total


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def starts_at(content_range: str | None) -> int | None:
    """'bytes 500-999/1000' -> 500"""
    first = (content_range or "").removeprefix("bytes ").split("-")[0]
    return int(first) if first.isdecimal() else None


def total_of(content_range: str | None) -> int | None:
    """'bytes */1000' -> 1000"""
    last = (content_range or "").rpartition("/")[2]
    return int(last) if last.isdecimal() else None


def digest(path: Path) -> str:
    whole = hashlib.md5(
        usedforsecurity=False
    )  # what the home publishes; it guards against accidents
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            whole.update(chunk)
    return whole.hexdigest()
